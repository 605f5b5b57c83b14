"""The landing queue: lands many branches with few checks. `line.py` decides, from the queue's state alone."""

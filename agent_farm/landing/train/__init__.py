"""The landing queue: many branches, few checks. `line.py` decides, a pure function of the queue's state."""

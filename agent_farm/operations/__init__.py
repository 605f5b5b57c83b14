"""Each verb whole: what it is asked, what it does, what it answers; the doors derive from `table.py`."""

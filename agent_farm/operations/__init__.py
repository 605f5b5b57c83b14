"""Each verb in one place: request, action and answer; the doors derive from `table.py`."""

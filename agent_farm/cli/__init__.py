"""The terminal door: one file per family of commands; only `output.py` prints."""

"""The terminal door: one file per family of commands; only `output.py` prints."""

from agent_farm.cli.quick_start import start_fast

start_fast()

"""The terminal door: one file per family of commands; only `output.py` prints."""

from agent_farm.cli.quick_start import load_click

load_click()

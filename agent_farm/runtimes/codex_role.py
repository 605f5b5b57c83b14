"""Codex takes a role as a setting: from its configuration home where that is ours, else as an argument."""

from __future__ import annotations

from pathlib import Path

from agent_farm.runtimes.prompts import fits_argument, order_to_read_role
from agent_farm.runtimes.toml_inline import inline_toml


def config_with_role(role: str) -> str:
    """config.toml of a private home, of any length and seen by nobody; the rest is on the command line."""
    return _setting(role) + "\n" if role else "# everything is on the command line\n"


def role_argument(role: str, file: Path) -> str:
    """For `-c`; a role that fits no argument is to be read from `file`, which the caller writes."""
    whole = _setting(role)
    return whole if fits_argument(whole) else _setting(order_to_read_role(role, file))


def _setting(role: str) -> str:
    return f"developer_instructions={inline_toml(role)}"

"""Finds programs that a role or prompt tells a builder to run but that are not installed."""

from __future__ import annotations

import os
import re

from agent_farm.search_path import find_program

# codev's programs, which its roles and protocols name; its own package installs them all
_ORDERED = re.compile(r"(?:`|^\s*(?:\$ )?)(porch|afx|consult)(?= [a-z-])", re.MULTILINE)


def absent_tools(text: str | None) -> list[str]:
    """Their names, each once. Prose that only mentions a program does not count."""
    path = os.environ.get("PATH", os.defpath)
    return sorted({name for name in _ORDERED.findall(text or "") if find_program(name, path) is None})

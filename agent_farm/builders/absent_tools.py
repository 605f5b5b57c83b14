"""Programs that a role or prompt tells a builder to run, and that are not installed."""

from __future__ import annotations

import re
import shutil

# Those of codev, whose roles and protocols name them; its own package brings them all.
_ORDERED = re.compile(r"(?:`|^\s*(?:\$ )?)(porch|afx|consult)(?= [a-z-])", re.MULTILINE)


def absent_tools(text: str | None) -> list[str]:
    """By name, each once. Prose that only mentions one orders nothing."""
    return sorted({name for name in _ORDERED.findall(text or "") if shutil.which(name) is None})

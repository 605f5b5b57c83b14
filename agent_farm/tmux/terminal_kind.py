"""Whether tmux can draw on a terminal of a given kind, because tmux's own message is hard to understand."""

from __future__ import annotations

import re
import subprocess

_SECONDS = 5.0
_NEEDED = ("clear", "cup")


def terminal_problem(term: str) -> str | None:
    """Why not; None also if that cannot be told here."""
    try:
        found = subprocess.run(
            ["infocmp", "-1", "--", term or "unknown"],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if found.returncode:
        return "This machine has no description of that terminal."
    if not all(re.search(rf"^\s+{name}=", found.stdout, re.MULTILINE) for name in _NEEDED):
        return "It can neither clear the screen nor move the cursor."
    return None

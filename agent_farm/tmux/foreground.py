"""Who would read what is typed into a pane."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SHELLS = frozenset(
    (
        "sh",
        "bash",
        "zsh",
        "fish",
        "dash",
        "ash",
        "ksh",
        "mksh",
        "csh",
        "tcsh",
        "nu",
        "elvish",
        "pwsh",
        "xonsh",
    )
)


def is_shell(command: str) -> bool:
    return os.path.basename(command).lstrip("-") in _SHELLS


def foreground_group(pane_pid: int) -> int | None:
    """The foreground process group of the terminal of `pane_pid`; None when it cannot be told."""
    try:
        stat = Path(f"/proc/{pane_pid}/stat").read_text()
        # the name, in parentheses, may hold anything: count from its end
        return int(stat.rpartition(")")[2].split()[5])
    except (OSError, ValueError, IndexError):
        return _asked_of_ps(pane_pid)


def _asked_of_ps(pane_pid: int) -> int | None:
    try:
        done = subprocess.run(
            ("ps", "-o", "tpgid=", "-p", str(pane_pid)),
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
        return int(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None

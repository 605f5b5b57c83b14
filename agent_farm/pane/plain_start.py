"""Restarts the launcher under a small environment before it does anything else."""

from __future__ import annotations

import os
import sys

# Variables that only the pane knows; everything else that a runtime gets comes from launch.json.
FROM_THE_PANE = ("TERM", "COLORTERM", "TMUX", "TMUX_PANE")
_FOR_ITSELF = ("PATH", "HOME", "USER", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", *FROM_THE_PANE)
_PLAIN = "plain"


def start_plainly(file: str) -> None:
    """Restart, so that not even /proc/<launcher>/environ holds a key: only the runtime may have those.

    Returns in the process that this starts.
    """
    if sys.argv[3:] == [_PLAIN]:
        return
    again = [sys.executable, "-I", "-S", "-X", "utf8", os.path.abspath(file), *sys.argv[1:3], _PLAIN]
    os.execve(again[0], again, {name: os.environ[name] for name in _FOR_ITSELF if name in os.environ})

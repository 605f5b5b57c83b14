"""What a runtime that ended at once said last: the pane shows it, and nobody else keeps it."""

from __future__ import annotations

import time
from collections.abc import Mapping

AT_ONCE_SECONDS = 30.0
_ASK_SECONDS = 2.0
_SHOWN_SECONDS = 0.5
_LENGTH = 200


def last_words(env: Mapping[str, str]) -> str | None:
    """The last line of the pane's screen that says something; None where tmux does not tell."""
    pane, server = env.get("TMUX_PANE"), env.get("TMUX", "").split(",")[0]
    if not pane or not server:
        return None
    deadline = time.monotonic() + _SHOWN_SECONDS  # tmux may not have read yet what was written last
    while (said := _last_line(server, pane)) == "" and time.monotonic() < deadline:
        time.sleep(0.05)
    return said or None


def _last_line(server: str, pane: str) -> str | None:
    import subprocess  # only for a runtime that ended at once

    argv = ("tmux", "-u", "-S", server, "capture-pane", "-p", "-t", pane)
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [_printable(line) for line in done.stdout.decode("utf-8", "replace").splitlines()]
    said = [line for line in lines if line and not line.startswith("[agent-farm]")]
    if done.returncode:
        return None
    return said[-1][:_LENGTH] if said else ""


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line).strip()

"""What only the kernel knows about a pane: who would read typed input, and whether a process still runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agent_farm.descendants import is_there

_SHELLS = frozenset(
    ("sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "csh", "tcsh", "nu", "elvish", "pwsh")
)


def is_shell(command: str) -> bool:
    return os.path.basename(command).lstrip("-") in _SHELLS


def foreground_group(pane_pid: int) -> int | None:
    """The foreground process group of the terminal of `pane_pid`; None if that cannot be told."""
    facts = _facts(pane_pid)
    return int(facts[1]) if facts else None


def why_not_the_runtime(command: str, pane_pid: int, runtime_pid: int | None) -> str | None:
    """Who else would read what is typed into a pane, or None.

    `runtime_pid` is the process that has to be in the foreground; without it, any program but a shell will
    do.
    """
    group = foreground_group(pane_pid)
    if runtime_pid is not None and group is not None:
        return None if group == runtime_pid else f"the pane shows {command}, not the runtime"
    return f"the pane shows a shell ({command})" if is_shell(command) else None


def is_running(pid: int) -> bool:
    """A zombie that its parent has not reaped yet is not running."""
    facts = _facts(pid) if is_there(pid) else ("Z", "")
    return facts is None or not facts[0].startswith("Z")


def _facts(pid: int) -> tuple[str, str] | None:
    """State and foreground group, from /proc if it exists, else from `ps`."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return _asked_of_ps(pid)
    words = stat.rpartition(")")[2].split()  # the name, in parentheses, may contain anything
    return (words[0], words[5]) if len(words) > 5 else None


def _asked_of_ps(pid: int) -> tuple[str, str] | None:
    argv = ("ps", "-o", "stat=,tpgid=", "-p", str(pid))
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return (words[0], words[1]) if len(words) == 2 else None

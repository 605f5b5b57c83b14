"""A stand-in for `git` or `tmux` on PATH that calls the real one, and does something at its N-th call, or at
the next one if several come at the same time."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.waiting import wait_until

# The process id stays the same over `exec`, so that a test can wait for what was started.
_SCRIPT = """#!/bin/sh
echo "$*" | tr '\\n' ' ' >> '{log}'
echo >> '{log}'
echo $$ >> '{pids}'
if [ "$(wc -l < '{log}')" -ge {number} ] && mkdir '{log}.reached' 2>/dev/null; then
{action}
fi
exec '{real}' "$@"
"""

ENDS_ITS_PARENT = "  kill -9 $PPID"
ENDS_ITS_PARENT_AFTERWARDS = "  '{real}' \"$@\"\n  kill -9 $PPID\n  exit 0"
ENDS_ITSELF_AFTERWARDS = "  '{real}' \"$@\"\n  kill -9 $$"
ENDS_BOTH = "  kill -9 $PPID $$"
ENDS_ITSELF = "  kill -9 $$"
INTERRUPTS_ALL = "  kill -INT 0"


def make(directory: Path, program: str, number: int, action: str) -> dict[str, str]:
    """The environment in which `program` is the stand-in."""
    directory.mkdir(parents=True)
    real = shutil.which(program)
    assert real
    log, pids = directory / f"{program}.log", directory / "pids"
    log.touch()
    pids.touch()
    script = directory / program
    script.write_text(
        _SCRIPT.format(log=log, pids=pids, number=number, action=action.replace("{real}", real), real=real)
    )
    script.chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}"}


def calls(directory: Path, program: str) -> list[str]:
    return (directory / f"{program}.log").read_text().splitlines()


def wait_for_orphans(directory: Path) -> None:
    pids = [int(line) for line in (directory / "pids").read_text().split()]
    wait_until(lambda: not any(map(_is_running, pids)), what="children that outlived their af")


def _is_running(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

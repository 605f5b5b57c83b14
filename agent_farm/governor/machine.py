"""What the machine reports about its memory; if it reports nothing, no build is held back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent_farm.governor.cgroup import PROC, memory_of_group

_FOR_BUILDS = 0.8  # of all memory; the rest is for agents, editors and the user
_PRESSED = 10.0  # percent of the last ten seconds in which a process waited for memory


class Reserved(NamedTuple):
    """What a running build may take, in bytes (0: it did not say), and its process (0: not started yet)."""

    memory: int
    pid: int


def has_room(wanted: int, others: Sequence[Reserved], proc: Path = PROC) -> bool:
    """Whether a build that needs `wanted` bytes may start beside `others`."""
    if _pressure(proc) >= _PRESSED:
        return False
    if not wanted:
        return True
    most, available = memory_for_builds(proc), _memory(proc, "MemAvailable")
    if most is not None and sum((wanted, *(one.memory or wanted for one in others))) > most:
        return False
    return available is None or wanted + sum(_still_to_come(one, proc) for one in others) <= available


def memory_for_builds(proc: Path = PROC) -> int | None:
    total = _memory(proc, "MemTotal")
    return total and int(total * _FOR_BUILDS)


def _still_to_come(one: Reserved, proc: Path) -> int:
    if not one.pid:
        return one.memory
    used = memory_of_group(one.pid, proc)
    if used is None:
        used = _memory_of_tree(one.pid, proc)
    return 0 if used is None else max(0, one.memory - used)


def _memory_of_tree(pid: int, proc: Path) -> int | None:
    """What a process and those below it have taken, without files; None if it is not to be seen from here."""
    pages, left = None, [str(pid)]
    while left:
        place = proc / left.pop()
        with suppress(OSError, ValueError):
            _, resident, of_files, *_ = map(int, (place / "statm").read_text().split())
            pages = (pages or 0) + resident - of_files
            for task in (place / "task").iterdir():
                left += (task / "children").read_text().split()
    return None if pages is None else pages * os.sysconf("SC_PAGE_SIZE")


def _pressure(proc: Path) -> float:
    with suppress(OSError, ValueError, IndexError):
        return float((proc / "pressure" / "memory").read_text().split("avg10=", 1)[1].split()[0])
    return 0.0


def _memory(proc: Path, name: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None

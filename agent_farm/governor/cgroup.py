"""Cgroups (v2) for builds: one for all of them, beside the process's own, and one below it for each.

Only where the tree around the process is delegated to its user and has the memory controller; elsewhere
builds stay in the group they are started in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from agent_farm.descendants import is_there

PROC = Path("/proc")
NAME = "agent-farm-builds"

_WEIGHT = "10"  # of 100 for others: what nice 10 is worth
_ABOVE_HIGH = 1.025  # above memory.high builds are slowed so much that with more room they would seem to hang


@contextmanager
def group_of_one(name: str, memory: int | None, proc: Path = PROC) -> Iterator[Path | None]:
    """A group for one build, removed at the end; None where there can be none. All builds share `memory`.

    `name` begins with the id of this process: the next build removes what a killed one left behind.
    """
    one = None
    with suppress(OSError, ValueError):
        if (shared := _shared(memory, proc)) is not None:
            _remove_left(shared)
            (shared / name).mkdir()
            one = shared / name
            _set(one, "memory.oom.group", "1")  # half a build is of no use
    try:
        yield one
    finally:
        if one is not None:
            with suppress(OSError):  # a daemon of the build still runs
                one.rmdir()


def enter(group: Path) -> None:
    _set(group, "cgroup.procs", "0")


def memory_of_group(pid: int, proc: Path = PROC) -> int | None:
    """What the group of a build has taken, in bytes, without what can be read again; None without one."""
    with suppress(OSError, ValueError):
        if NAME in PurePath(_path(pid, proc) or "").parent.parts and (group := _directory(pid, proc)):
            lines = (line.split() for line in (group / "memory.stat").read_text().splitlines())
            return sum(int(value) for name, value in lines if name in ("anon", "shmem"))
    return None


def _shared(memory: int | None, proc: Path) -> Path | None:
    own = _directory("self", proc)
    if own is None or not (own / "memory.high").exists():
        return None
    # to move a process takes the right to write this file of the nearest group above both
    if not os.access(own.parent / "cgroup.procs", os.W_OK):
        return None
    shared = own.parent if own.parent.name == NAME else own.parent / NAME
    shared.mkdir(exist_ok=True)
    for controller in ("+memory", "+cpu"):
        _set(shared, "cgroup.subtree_control", controller)
    _set(shared, "cpu.weight", _WEIGHT)
    if memory is not None:
        _set(shared, "memory.high", str(memory))
        _set(shared, "memory.max", str(int(memory * _ABOVE_HIGH)))
    return shared


def _remove_left(shared: Path) -> None:
    for path in shared.iterdir():
        pid = path.name.partition("-")[0]
        if pid.isdecimal() and path.is_dir() and not is_there(int(pid)):
            with suppress(OSError):
                path.rmdir()


def _directory(pid: int | str, proc: Path) -> Path | None:
    """The process's directory in the tree as it is mounted here."""
    if (path := _path(pid, proc)) is None:
        return None
    own = PurePath(path)
    for line in (proc / "self" / "mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        root, place = mount.split()[3:5]
        if kind.startswith("cgroup2 ") and own.is_relative_to(root):
            return Path(place) / own.relative_to(root)
    return None


def _path(pid: int | str, proc: Path) -> str | None:
    for line in (proc / str(pid) / "cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::")
    return None


def _set(group: Path, name: str, value: str) -> None:
    """Where a controller is not there, its file is not either."""
    with suppress(OSError), open(os.open(group / name, os.O_WRONLY), "w") as file:
        file.write(value)

"""The processes of one start of a builder: found by AF_RUN in their environment, and ended."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from msgspec import Struct

from agent_farm.errors import DamagedFile
from agent_farm.own_files import read_own

_PROC = Path("/proc")
_POLL_SECONDS = 0.02
_GRACE_SECONDS = 3.0


def processes_of_runs(runs: Iterable[str]) -> dict[str, list[int]]:
    """Every process that was started with AF_RUN=one of `runs`, except this one, from one scan of all.

    Runs without any are left out. Linux only; elsewhere none.
    """
    wanted = {f"AF_RUN={run}".encode(): run for run in runs}
    found: dict[str, list[int]] = {}
    for entry in _PROC.glob("[0-9]*"):
        if int(entry.name) != os.getpid():
            for variable in wanted.keys() & set(_environment(entry)):
                found.setdefault(wanted[variable], []).append(int(entry.name))
    return found


def load_runtime_pid(file: Path, run: str) -> int | None:
    """The pid of that run's runtime, from `processes.json`."""
    try:
        document = json.loads(read_own(file))
        return int(document["runtime"]) if document["run"] == run else None
    except (OSError, DamagedFile, ValueError, KeyError, TypeError, RecursionError):
        return None


def belongs_to_run(pid: int, run: str) -> bool:
    """Whether that process is alive and was started with AF_RUN=`run`. Linux only; elsewhere False."""
    return f"AF_RUN={run}".encode() in _environment(_PROC / str(pid))


def written_below(roots: Iterable[int]) -> dict[int, str | None]:
    """A text for each root: how much it and its descendants have written so far. The text stays the same as
    long as none of them writes anything. None where that cannot be known, as everywhere but on Linux."""
    children = dict[int, list[int]]()
    for entry in os.scandir(_PROC) if _PROC.is_dir() else ():
        if entry.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
                parent = _read(f"{entry.path}/stat").rpartition(b")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry.name))
    return {root: _written(root, children) for root in roots}


def _written(root: int, children: Mapping[int, Sequence[int]]) -> str | None:
    told, left = list[str](), [root]
    while left:
        pid = left.pop()
        left += children.get(pid, ())
        try:
            counted = dict(line.split(b": ") for line in _read(f"{_PROC}/{pid}/io").splitlines())
            told.append(f"{pid}:{int(counted[b'wchar'])}:{int(counted[b'write_bytes'])}")
        except (OSError, ValueError, KeyError):
            return None
    return " ".join(sorted(told))


def _read(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


class GitProcess(Struct, frozen=True):
    """A running git process: where it runs, and its command line."""

    pid: int
    directory: Path
    words: tuple[str, ...]


def gits_at_work() -> list[GitProcess]:
    """Every git process that we may inspect. Linux only; elsewhere none."""
    found = []
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "comm").read_text().strip().partition("-")[0] == "git":  # git-receive-pack too
                words = os.fsdecode((entry / "cmdline").read_bytes()).rstrip("\0").split("\0")
                found.append(GitProcess(int(entry.name), Path(os.readlink(entry / "cwd")), tuple(words)))
    return found


def end_runs(runs: Collection[str]) -> dict[str, list[int]]:
    """TERM, then KILL, until no process of these runs is left; returns those that outlived even that."""
    left = processes_of_runs(runs)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in chain.from_iterable(left.values()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        deadline = time.monotonic() + _GRACE_SECONDS
        while left and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            left = processes_of_runs(left)
    return left


def _environment(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile, or is another user's
        return []

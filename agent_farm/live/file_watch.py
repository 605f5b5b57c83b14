"""Watches for changes on disk: builders' events, what git writes about their worktrees, the farm's state.

inotify costs nothing while nothing happens. If the system has none (macOS), or no watches are left, the
files' times are polled.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent_farm.paths import FarmPaths

_EVENT = struct.Struct("iIII")
_MODIFY, _CLOSE_WRITE, _MOVED_TO, _CREATE, _DELETE, _OVERFLOW = 0x2, 0x8, 0x80, 0x100, 0x200, 0x4000
_FOLLOWED = _MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE | _DELETE
_LOOK_SECONDS = 0.2
_RUN_FILES = ("events.jsonl", "exit.json", "proof.json", "usage.json")
# What git writes for a worktree whenever something is committed, staged or checked out there.
_GIT_FILES = ("index", "HEAD", "COMMIT_EDITMSG")

# The farm's state files, and the part of the farm that each one is about.
_PARTS = {
    "registry.json": "registry",
    "server.json": "server",
    "landing.json": "landing",
    "fleet.json": "fleet",
    "butler.db": "sessions",
    "butler.db-wal": "sessions",
}
EVERYTHING = "everything"  # events were lost, so that everything must be read again


@dataclass(slots=True)
class Changes:
    """Changes since the last were taken: in the run directories of `builders`, in git's directories for the
    worktrees `trees`, and in `parts` of the farm."""

    builders: set[str] = field(default_factory=set)
    trees: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.builders or self.trees or self.parts)

    def add(self, other: Changes) -> None:
        self.builders |= other.builders
        self.trees |= other.trees
        self.parts |= other.parts


class Watch(Protocol):
    def follow(self, ids: Iterable[str]) -> set[str]:
        """Follow the run directories of exactly these builders; returns those that are new."""

    def close(self) -> None: ...


OnChange = Callable[[Changes], None]


def open_watch(paths: FarmPaths, git_worktrees: Path, on_change: OnChange) -> Watch:
    """Call it on the event loop on which `on_change` is to be called.

    `git_worktrees` is where git keeps a directory for each worktree.
    """
    with suppress(OSError, AttributeError):
        if sys.platform == "linux":
            return Inotify(paths, git_worktrees, on_change)
    return Looking(paths, git_worktrees, on_change)


class Inotify:
    def __init__(self, paths: FarmPaths, git_worktrees: Path, on_change: OnChange) -> None:
        self._paths, self._git_worktrees, self._on_change = paths, git_worktrees, on_change
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._followed: dict[str, list[int]] = {}
        self._builders: dict[int, str] = {}
        self._loop = asyncio.get_running_loop()
        try:
            self._state = self._add(paths.state)
        except OSError:
            os.close(self._descriptor)
            raise
        self._loop.add_reader(self._descriptor, self._read)

    def follow(self, ids: Iterable[str]) -> set[str]:
        wanted, before = set(ids), set(self._followed)
        for id in before - wanted:
            for watch in self._followed.pop(id):
                self._builders.pop(watch, None)
                self._libc.inotify_rm_watch(self._descriptor, watch)
        for id in wanted - before:
            with suppress(FileNotFoundError):  # not created yet: the registry will change once it is
                self._followed[id] = [self._add(self._paths.run(id))]
                self._builders[self._followed[id][0]] = id
        for id in self._followed:
            if len(self._followed[id]) < 2:
                with suppress(OSError):  # queued, its worktree is gone, or too many watches
                    watch = self._add(self._git_worktrees / id)
                    self._followed[id].append(watch)
                    self._builders[watch] = id
        return set(self._followed) - before

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _add(self, directory: Path) -> int:
        return _checked(
            self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), _FOLLOWED), directory
        )

    def _read(self) -> None:
        changes = Changes()
        while True:
            try:
                data = os.read(self._descriptor, 65536)
            except BlockingIOError:
                break
            for watch, mask, name in _events(data):
                self._note(changes, watch, mask, name)
        if changes:
            self._on_change(changes)

    def _note(self, changes: Changes, watch: int, mask: int, name: str) -> None:
        if mask & _OVERFLOW:
            changes.parts.add(EVERYTHING)
        elif watch == self._state:
            changes.parts |= {_PARTS[name]} if name in _PARTS else set()
        elif name in _RUN_FILES and watch in self._builders:
            changes.builders.add(self._builders[watch])
        elif name in _GIT_FILES and watch in self._builders:
            changes.trees.add(self._builders[watch])


def _events(data: bytes) -> Iterable[tuple[int, int, str]]:
    offset = 0
    while offset + _EVENT.size <= len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, offset)
        offset += _EVENT.size
        name = data[offset : offset + length].rstrip(b"\0")
        offset += length
        yield watch, mask, os.fsdecode(name)


def _checked(answer: int, path: Path | None = None) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path) if path else None)
    return answer


class Looking:
    """Polls each followed file's time and size five times a second."""

    def __init__(self, paths: FarmPaths, git_worktrees: Path, on_change: OnChange) -> None:
        self._paths, self._git_worktrees, self._on_change = paths, git_worktrees, on_change
        self._ids: set[str] = set()
        self._seen: dict[str, object] = {}
        self._task = asyncio.get_running_loop().create_task(self._run())

    def follow(self, ids: Iterable[str]) -> set[str]:
        before, self._ids = self._ids, set(ids)
        return self._ids - before

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        self._look()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            changes = self._look()
            if changes:
                self._on_change(changes)

    def _look(self) -> Changes:
        state = str(self._paths.state)
        changes = Changes(
            parts={part for name, part in _PARTS.items() if self._has_changed(f"{state}/{name}")}
        )
        runs, trees = str(self._paths.runs), str(self._git_worktrees)
        for id in self._ids:
            if self._any_changed(f"{runs}/{id}", _RUN_FILES):
                changes.builders.add(id)
            if self._any_changed(f"{trees}/{id}", _GIT_FILES):
                changes.trees.add(id)
        return changes

    def _any_changed(self, directory: str, names: Iterable[str]) -> bool:
        """Checks every file (`any` would stop early), so that no change is reported twice."""
        return bool(sum(self._has_changed(f"{directory}/{name}") for name in names))

    def _has_changed(self, path: str) -> bool:
        try:
            facts = os.stat(path)
            now: object = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        except OSError:
            now = None
        before = self._seen.get(path)
        self._seen[path] = now
        return now != before

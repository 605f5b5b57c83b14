"""Brings ignored output of the main checkout (`node_modules`, `target`, `.venv`) into a worktree.

The result equals the source, even if a ready worktree brought an older version. Files share their blocks with
the source if the file system can (reflinks), otherwise they are copied. They are never hard links to it,
because tools and agents write in place; but files linked to each other at the source are linked to each other
here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agent_farm.pace import Step

MOST_ENTRIES, MOST_BYTES, MOST_SECONDS = 1_000_000, 50_000_000_000, 600.0
_LEAST_FREE = 1_000_000_000  # bytes that stay free on the disk
_EVERY = 100  # entries between two looks at the clock and the disk
_LONG_SECONDS = 1.0  # then it is worth counting what there is
_FICLONE = 0x40049409
_CANNOT_CLONE = (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EXDEV, errno.EINVAL)
_LONGEST_SCRIPT = 1 << 18
_CHUNK = 1 << 20
_CUT_SHORT = 0
_WHAT = "Carrying output"


class _TooMuch(Exception):
    """The message says what was too much."""


class Carrier:
    """Carries `names` into one worktree. With `only_missing`, what is there stays as it is."""

    def __init__(
        self, source: Path, worktree: Path, names: Sequence[str], step: Step, *, only_missing: bool = False
    ) -> None:
        self._source, self._worktree = str(source), str(worktree)
        self._names = names
        self._step = step
        self._only_missing = only_missing
        self._clones = True
        self._entries = self._bytes = self._total = 0
        self._begin = time.monotonic()
        self._linked: dict[tuple[int, int], str] = {}
        step(_WHAT, 0, 0)

    def carry(self, name: str) -> Iterator[str]:
        """Yields a line for each entry that is left out; one that is too large is left out as a whole."""
        source, target = (os.path.join(root, name) for root in (self._source, self._worktree))
        was_there = os.path.lexists(target)
        try:
            yield from self._bring(source, target, is_environment=False)
        except _TooMuch as much:
            if not (self._only_missing and was_there):
                _remove(target)
            yield f"not carried: {name!r} {much}"

    def _bring(self, source: str, target: str, *, is_environment: bool) -> Iterator[str]:
        facts = os.lstat(source)
        self._count()
        if facts.st_uid != os.geteuid():
            yield f"not carried: {source!r} belongs to another user"
        elif stat.S_ISDIR(facts.st_mode):
            yield from self._bring_directory(source, target, facts, is_environment=is_environment)
        elif stat.S_ISLNK(facts.st_mode):
            self._bring_link(source, target)
        elif not stat.S_ISREG(facts.st_mode):
            yield f"not carried: {source!r} is neither file, directory nor symlink"
        elif is_environment and _names_places(source) and facts.st_size <= _LONGEST_SCRIPT:
            self._bring_script(source, target, facts)
        elif not self._bring_file(source, target, facts):
            yield f"{source!r} changed while it was carried"

    def _bring_directory(
        self, source: str, target: str, facts: os.stat_result, *, is_environment: bool
    ) -> Iterator[str]:
        there = _lstat(target)
        if there is not None and not stat.S_ISDIR(there.st_mode):
            if self._only_missing:
                return
            os.unlink(target)
            there = None
        if there is None:
            os.mkdir(target, 0o700)
        names = os.listdir(source)
        is_environment = is_environment or "pyvenv.cfg" in names
        if not self._only_missing and there is not None:
            os.chmod(target, 0o700)
            for gone in set(os.listdir(target)) - set(names):
                _remove(os.path.join(target, gone))
        for name in sorted(names):
            one, other = os.path.join(source, name), os.path.join(target, name)
            try:
                yield from self._bring(one, other, is_environment=is_environment)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise _TooMuch("does not fit on the disk") from error
                yield f"not carried: {one!r}: {error.strerror or error}"
        if there is None or not self._only_missing:
            os.chmod(target, stat.S_IMODE(facts.st_mode))
            os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def _bring_link(self, source: str, target: str) -> None:
        """The link keeps its meaning: one into the checkout is pointed to the worktree instead."""
        meant = os.readlink(source)
        full = os.path.normpath(os.path.join(os.path.dirname(source), meant))
        is_inside = _is_below(full, self._source)
        if os.path.isabs(meant) and is_inside:
            meant = self._worktree + full[len(self._source) :]
        elif not is_inside and not os.path.isabs(meant):
            meant = full
        there = _lstat(target)
        if there is not None:
            if self._only_missing or (stat.S_ISLNK(there.st_mode) and os.readlink(target) == meant):
                return
            _remove(target)
        os.symlink(meant, target)

    def _bring_script(self, source: str, target: str, facts: os.stat_result) -> None:
        """Rewrites paths in a virtual environment's scripts, which otherwise run the checkout's code."""
        with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            content = file.read()
        if b"\0" not in content:
            place = re.escape(os.fsencode(self._source)) + rb"(?![\w.-])"
            content = re.sub(place, lambda _: os.fsencode(self._worktree), content)
        there = _lstat(target)
        if there is not None:
            if self._stays(there):
                return
            _remove(target)
        self._write(target, facts, lambda out: _write_all(out, content))

    def _bring_file(self, source: str, target: str, facts: os.stat_result) -> bool:
        there = _lstat(target)
        if there is not None:
            if self._stays(there) or _is_same(there, facts):
                return True
            _remove(target)
        known = self._linked.get((facts.st_dev, facts.st_ino)) if facts.st_nlink > 1 else None
        if known is not None:
            os.link(known, target, follow_symlinks=False)
            return True
        self._bytes += facts.st_size
        file = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._write(target, facts, lambda out: self._copy(file, out))
            after = os.fstat(file)
        finally:
            os.close(file)
        if facts.st_nlink > 1:
            self._linked[facts.st_dev, facts.st_ino] = target
        return _is_same(after, facts)

    def _write(self, target: str, facts: os.stat_result, fill: Callable[[int], None]) -> None:
        """Sets mode and times last: an interrupted copy must not look like the file, or be readable."""
        out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _CUT_SHORT)
        try:
            fill(out)
            os.utime(out, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            os.fchmod(out, stat.S_IMODE(facts.st_mode))
        finally:
            os.close(out)

    def _copy(self, source: int, target: int) -> None:
        if self._clones:
            try:
                clone(source, target)
                return
            except OSError as error:
                if error.errno not in _CANNOT_CLONE:
                    raise
                self._clones = False  # nor can it clone the next one
        while chunk := os.read(source, _CHUNK):
            _write_all(target, chunk)

    def _stays(self, there: os.stat_result) -> bool:
        return self._only_missing and stat.S_IMODE(there.st_mode) != _CUT_SHORT

    def _count(self) -> None:
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise _TooMuch(f"has more than {MOST_ENTRIES:,} entries")
        if self._bytes > MOST_BYTES:
            raise _TooMuch(f"is larger than {MOST_BYTES / 1e9:.0f} GB")
        if self._entries % _EVERY:
            return
        now = time.monotonic()
        if now - self._begin > MOST_SECONDS:
            raise _TooMuch(f"takes longer than {MOST_SECONDS:.0f} s")
        room = os.statvfs(self._worktree)
        if room.f_bavail * room.f_frsize < _LEAST_FREE:
            raise _TooMuch(f"would leave less than {_LEAST_FREE / 1e9:.0f} GB on the disk")
        if now - self._begin >= _LONG_SECONDS:
            if not self._total:
                self._total = sum(_entries(os.path.join(self._source, name)) for name in self._names)
            self._step(_WHAT, self._entries, self._total)


def clone(source: int, target: int) -> None:
    """Share the blocks; OSError if the file system cannot."""
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "no reflinks here")
    fcntl.ioctl(target, _FICLONE, source)


def _names_places(path: str) -> bool:
    """Whether tools of a virtual environment generate the file with the path of that environment in it."""
    place, name = os.path.split(path)
    return os.path.basename(place) == "bin" or name.endswith(".pth") or name.startswith("__editable__")


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_mode, one.st_size, one.st_mtime_ns) == (other.st_mode, other.st_size, other.st_mtime_ns)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def _entries(path: str) -> int:
    """The entries of a directory, and itself."""
    return 1 + sum(len(folders) + len(files) for _, folders, files in os.walk(path))


def _write_all(out: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(out, left) :]


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _remove(path: str) -> None:
    there = _lstat(path)
    if there is not None and stat.S_ISDIR(there.st_mode):
        shutil.rmtree(path)
    elif there is not None:
        os.unlink(path)

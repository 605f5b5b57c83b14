"""The throw-away directory of one run: made, filled, locked while in use, and removed whatever happens.

A live run holds a lock on the directory itself; a directory without a lock was left by a run that was
killed. It gets its name only once it is locked, so that no other run mistakes it for such a leftover.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_farm.ask.clean_end import undisturbed
from agent_farm.disk import cannot_write

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OURS = re.compile(rf"lctx-{_UUID}")
_UNFINISHED = re.compile(rf"\.lctx-{_UUID}\.new")
_UNFINISHED_SECONDS = 60.0


@contextmanager
def throwaway_directory(tmp: Path) -> Iterator[Path]:
    """`<tmp>/lctx-<uuid>/` (0700); leftovers of killed runs are removed first."""
    parent = Path(os.path.realpath(tmp))
    remove_leftovers(parent)
    path, descriptor = _make(parent)
    try:
        yield path
    finally:
        with undisturbed():
            remove_tree(path)
            os.close(descriptor)


def remove_leftovers(parent: Path) -> None:
    """Removes directories of this user's runs that no live process holds; links are never followed."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name) or (_UNFINISHED.fullmatch(entry.name) and _is_old(entry)):
                _remove_if_left(Path(entry.path))


def remove_tree(path: Path) -> None:
    """Removes everything below, links as links, and also what an agent made read-only."""
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for directory, _, _ in os.walk(path, followlinks=False):
            with suppress(OSError):
                os.chmod(directory, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def _make(parent: Path) -> tuple[Path, int]:
    name = uuid.uuid4()
    fresh, path = parent / f".lctx-{name}.new", parent / f"lctx-{name}"
    try:
        fresh.mkdir(mode=0o700)
        descriptor = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(path)
    except OSError as error:
        with suppress(OSError):
            fresh.rmdir()
        raise cannot_write(path, error) from error
    return path, descriptor


def _remove_if_left(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # a link, a file, or somebody else's
        return
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(path)
    except OSError:  # held by a live run
        return
    finally:
        os.close(descriptor)


def _is_old(entry: os.DirEntry[str]) -> bool:
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > _UNFINISHED_SECONDS

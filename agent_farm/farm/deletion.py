"""Deletes trees, even below read-only directories such as those in Go's module cache.

Also run by itself, to delete many files in the background: `python -I -S deletion.py`, with the trees on
stdin.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_MANY_ENTRIES = 2000  # in all trees of one call; more are deleted in the background


def delete_tree(path: Path, *, to: Path | None = None) -> list[Path]:
    """`set_out` and `delete_trees` for one."""
    return delete_trees([set_out(path, to=to)])


def set_out(path: Path, *, to: Path | None = None) -> Path:
    """Move the tree out of its place, under a name that says that it is to be deleted.

    `to` is the directory in which it waits for that, by default the one that it is in.
    """
    # a unique name, because an earlier tree with the same name may not be deleted yet
    doomed = (to or path.parent) / f".{path.name}.{time.time_ns()}.deleting"
    mode = path.lstat().st_mode
    with suppress(OSError):
        path.chmod(mode | 0o700)  # otherwise it could not be renamed
    os.rename(path, doomed)
    return doomed


def delete_trees(trees: Iterable[Path]) -> list[Path]:
    """Delete what was set out: a few files at once, all others in one process in the background.

    Returns what could not be deleted at once.
    """
    waiting, left, room = list(trees), list[Path](), _MANY_ENTRIES
    while waiting and (room := room - _count(waiting[0], room)) >= 0:
        tree = waiting.pop(0)
        delete(str(tree))
        if os.path.lexists(tree):
            left.append(tree)
    if waiting:
        try:
            _delete_later(waiting)
        except OSError:  # no more processes; the next `af prune --expire` deletes them
            left += waiting
    return left


def _count(tree: Path, most: int) -> int:
    """How many entries are in it, counted until there are more than `most`."""
    count = 0
    for _, folders, files in os.walk(tree):
        count += len(folders) + len(files)
        if count > most:
            break
    return count


def _delete_later(trees: Sequence[Path]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as told:
        told.writelines(os.fsencode(tree) + b"\0" for tree in trees)


def delete(tree: str) -> None:
    """What cannot be deleted stays, without an error: the tree has already left its place."""
    if os.path.islink(tree):
        with suppress(OSError):
            os.unlink(tree)
        return
    _make_writable(tree)
    for directory, folders, _ in os.walk(tree):  # a directory is made writable before it is entered
        for name in folders:
            _make_writable(os.path.join(directory, name))
    shutil.rmtree(tree, ignore_errors=True)


def _make_writable(directory: str) -> None:
    if not os.path.islink(directory):
        with suppress(OSError):
            os.chmod(directory, 0o700)


if __name__ == "__main__":
    # A path without its end comes from an `af` that was killed, and could be that of a directory above.
    for name in sys.stdin.buffer.read().split(b"\0")[:-1]:
        delete(os.fsdecode(name))

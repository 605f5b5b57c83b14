"""Deletes trees, even below read-only directories such as those in Go's module cache.

Also run by itself, to delete large trees in the background: `python -I -S deletion.py DIRECTORY`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_MANY_FILES = 2000


def delete_tree(path: Path, *, to: Path | None = None) -> list[Path]:
    """Move the tree out of its place at once; a large one is deleted in the background. Returns what is left.

    `to` is the directory in which it waits for deletion, by default the one that it is in.
    """
    # a unique name, because an earlier tree with the same name may not be deleted yet
    doomed = (to or path.parent) / f".{path.name}.{time.time_ns()}.deleting"
    mode = path.lstat().st_mode
    with suppress(OSError):
        path.chmod(mode | 0o700)  # otherwise it could not be renamed
    os.rename(path, doomed)
    if not _has_many_files(doomed):
        delete(str(doomed))
        return [doomed] if os.path.lexists(doomed) else []
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(doomed)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return []


def delete(tree: str) -> None:
    """What cannot be deleted stays, without an error: the tree has already left its place."""
    _make_writable(tree)
    for directory, folders, _ in os.walk(tree):  # a directory is made writable before it is entered
        for name in folders:
            _make_writable(os.path.join(directory, name))
    shutil.rmtree(tree, ignore_errors=True)


def _make_writable(directory: str) -> None:
    if not os.path.islink(directory):
        with suppress(OSError):
            os.chmod(directory, 0o700)


def _has_many_files(path: Path) -> bool:
    count = 0
    for _, _, files in os.walk(path):
        count += len(files)
        if count > _MANY_FILES:
            return True
    return False


if __name__ == "__main__":
    delete(sys.argv[1])

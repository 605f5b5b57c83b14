"""Deletes trees; also what lies below directories that may not be written, as in Go's module cache.

Runs by itself, too, for large trees in the background: `python -I -S deletion.py DIRECTORY`.
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
    """Gone from its place at once; a large tree is deleted in the background. What cannot be is returned.

    `to` is the directory where it waits for its end, else that it is in.
    """
    # a name of its own: an earlier tree of this name may still be on its way out
    doomed = (to or path.parent) / f".{path.name}.{time.time_ns()}.deleting"
    mode = path.lstat().st_mode
    with suppress(OSError):
        path.chmod(mode | 0o700)  # else it may not change its place
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
    """What cannot be deleted stays, without an error: the tree has left its place already."""
    _make_writable(tree)
    for directory, folders, _ in os.walk(tree):  # a directory is entered after it was made writable
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

"""Deletes one tree; also what lies below directories that may not be written, as in Go's module cache.

Runs by itself, too, for large trees in the background: `python -I -S deletion.py DIRECTORY`.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress


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


if __name__ == "__main__":
    delete(sys.argv[1])

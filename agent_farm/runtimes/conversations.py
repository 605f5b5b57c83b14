"""What is left in a runtime's private home when a run has ended: the conversation, so that it can go on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def keep_conversation(home: Path, kept: Sequence[str]) -> None:
    """Of the directories that `kept` begin with everything else goes: each start makes it anew.

    It holds the end of a key, copies of tools, settings. Without `kept` all of it is the conversation.
    """
    keep = [home / name for name in kept]
    for own in dict.fromkeys(name.partition("/")[0] for name in kept):
        if not (home / own).is_symlink():
            _thin_out(home / own, keep)


def _thin_out(directory: Path, keep: Sequence[Path]) -> None:
    for place, directories, files in os.walk(directory):
        for name in list(directories):
            path = Path(place, name)
            if path in keep or path.is_symlink() or not any(one.is_relative_to(path) for one in keep):
                directories.remove(name)  # nothing in there is looked at
                if path not in keep:
                    _remove(path)
        for name in files:
            if (path := Path(place, name)) not in keep:
                _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

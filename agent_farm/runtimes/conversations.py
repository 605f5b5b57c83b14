"""Keeps of a headless conversation what it needs to continue: its files, and its cost so far."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import make_directory, replace_file
from agent_farm.runtimes.cli import Start


def keep_conversation(home: Path, kept: Sequence[str]) -> None:
    """Delete everything except `kept`, in the directories that these names begin with: each start makes it
    anew.

    That is the end of a key, copies of tools, and settings. If `kept` is empty, everything belongs to the
    conversation.
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
                directories.remove(name)  # so that os.walk does not enter it
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


def spent_since(start: Start, conversation: str | None, totals: dict[str, float]) -> dict[str, float] | None:
    """This run's share of `totals`, for CLIs that report the cost of a whole conversation.

    None if the conversation was resumed and its total before is not known.
    """
    if conversation is None or start.mode != "headless":
        return totals
    file = _totals_file(start, conversation)
    before = _load_totals(file) if start.resume else {}
    _save_totals(file, totals)
    if before is None:
        return None
    return {name: value - before.get(name, 0.0) for name, value in totals.items()}


def _load_totals(file: Path) -> dict[str, float] | None:
    with suppress(OSError, ValueError):
        stored = json.loads(file.read_text())
        return {str(name): float(value) for name, value in stored.items()}
    return None


def _save_totals(file: Path, totals: dict[str, float]) -> None:
    make_directory(file.parent)
    replace_file(file, json.dumps(totals))


def _totals_file(start: Start, conversation: str) -> Path:
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in conversation)
    return start.home.parent / "totals" / f"{safe}.json"

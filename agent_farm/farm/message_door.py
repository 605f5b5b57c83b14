"""Passes messages to a runtime through its plugin: nothing is typed, and a user's draft is not touched.

A message is a file in the run's `door`. The runtime's plugin renames it before passing it on, `af` removes it
if that does not happen: whoever is first has it, so that it is either passed on or typed, never both. A
builder can write there, so nothing found there may break a command.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import replace_file
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.own_files import read_own, require_own_directory
from agent_farm.processes import belongs_to_run
from agent_farm.tmux.deliverable import Delivery

_TAKEN_SECONDS = 5.0
_DONE_SECONDS = 60.0
_POLL_SECONDS = 0.02
_LONGEST = 300


def pass_in(door: Path, run: str, text: str) -> Delivery | None:
    """None if it was not taken and has to be typed."""
    if not _is_open(door, run):
        return None
    id = f"{time.time_ns():020d}-{os.urandom(4).hex()}"
    message, done = door / f"{id}.json", door / f"{id}.done"
    try:
        replace_file(message, json.dumps({"text": text}))
    except AgentFarmError:
        return None
    try:
        _came(done, _TAKEN_SECONDS)
    finally:  # after Ctrl-C, too
        was_left = _take_back(message)
    if was_left:
        return None
    _came(done, _DONE_SECONDS)
    return _outcome(door, id)


def _take_back(message: Path) -> bool:
    try:
        message.unlink()
    except OSError:
        return False
    return True


def _came(file: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not file.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _outcome(door: Path, id: str) -> Delivery:
    try:
        error = json.loads(read_own(door / f"{id}.done"))["error"]
    except (OSError, DamagedFile, ValueError, KeyError, TypeError, RecursionError) as problem:
        return Delivery("failed", f"its plugin accepted it, but does not report the outcome ({problem})")
    finally:
        for ending in ("taken", "done"):
            with suppress(OSError):
                (door / f"{id}.{ending}").unlink()
    return Delivery("failed", str(error)[:_LONGEST]) if error else Delivery("submitted", source="event")


def _is_open(door: Path, run: str) -> bool:
    """Whether the process that opened it is alive and belongs to this run."""
    with suppress(OSError, DamagedFile, ValueError):
        require_own_directory(door)
        return belongs_to_run(int(read_own(door / "open")), run)
    return False

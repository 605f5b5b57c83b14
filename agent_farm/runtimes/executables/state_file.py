"""The state file of a session: values that the agent wrote are kept, and missing ones added."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from agent_farm.disk import make_directory, replace_file

_STARTING, _DONE = "starting", "done"


def begin_state(path: Path, brief: Path) -> None:
    state = _load(path, brief)
    if state["current_substep"] == _DONE:  # we wrote this when the last turn ended
        state["current_substep"] = _STARTING
    make_directory(path.parent)
    _write(path, {**state, "status": "in-progress"})


def end_state(path: Path, brief: Path, *, failed: bool, artifacts: Sequence[str]) -> None:
    """Does not create a directory that is gone: failing to write is then an error."""
    state = _load(path, brief)
    state["status"] = "failed" if failed else "completed"
    failures = state["failure_count"]
    state["failure_count"] = (failures if isinstance(failures, int) else 0) + int(failed)
    known = state["artifacts"] if isinstance(state["artifacts"], list) else []
    state["artifacts"] = list(dict.fromkeys([*map(str, known), *artifacts]))
    if not failed and state["current_substep"] == _STARTING:
        state["current_substep"] = _DONE
    _write(path, state)


def _write(path: Path, state: dict[str, Any]) -> None:
    replace_file(path, json.dumps(state, indent=2) + "\n")


def _load(path: Path, brief: Path) -> dict[str, Any]:
    """The state in the documented form, with the values from the file."""
    said = _read(path)
    named = said.pop("lego_name", None)
    form = {
        "lego_name": named if isinstance(named, str) and named else _lego_name(path, brief),
        "status": "in-progress",
        "current_substep": _STARTING,
        "completed_substeps": [],
        "failure_count": 0,
        "artifacts": [],
    }
    return {**form, **said}


def _lego_name(path: Path, brief: Path) -> str:
    """The name in the file's name, else the heading of the brief, which may be gone."""
    for stem, pattern in ((path.stem, r"lego_state_(.+)"), (brief.stem, r"session_(.+)_brief")):
        if found := re.fullmatch(pattern, stem):
            return found[1]
    try:
        text = brief.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return brief.stem
    heading = re.search(r"^#[ \t]+(?:LEGO:[ \t]*)?(\S.*)$", text, re.MULTILINE)
    return heading[1].strip() if heading else brief.stem


def _read(path: Path) -> dict[str, Any]:
    """Empty if there is no file; a damaged one is moved aside, never overwritten."""
    try:
        loaded = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        loaded = None
    if isinstance(loaded, dict):
        return loaded
    names = (f"{path.name}.damaged{f'.{number}' if number else ''}" for number in count())
    path.rename(next(aside for name in names if not (aside := path.with_name(name)).exists()))
    return {}

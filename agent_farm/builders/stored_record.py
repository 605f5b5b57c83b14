"""Records on disk: no path that the farm's place and the id give, and nothing believed that is read back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from agent_farm.builders.config import BUILDER_TYPES
from agent_farm.builders.record import RECORD_STATES, BuilderRecord
from agent_farm.builders.ref_names import is_branch_name
from agent_farm.errors import DamagedFile
from agent_farm.paths import FarmPaths, RunPaths, is_below, is_builder_id

_NAMES = frozenset(field.name for field in fields(BuilderRecord))


def stored_record(record: BuilderRecord, paths: FarmPaths) -> dict[str, Any]:
    """What is written down of it: the farm may be moved afterwards."""
    document = record.to_json()
    del document["worktree"]
    if record.prompt_file is not None:
        document["prompt_file"] = RunPaths(Path()).prompt.name
    if record.role is not None and Path(record.role).is_relative_to(paths.root):
        document["role"] = os.path.relpath(record.role, paths.root)
    return document


def record_from_json(id: str, document: object, paths: FarmPaths) -> BuilderRecord:
    """Refuses what it does not know, so that a damaged record is never half read.

    Records are input from outside: what becomes a path, a ref or an argument has the form that af gives it.
    """
    if not is_builder_id(id):
        raise DamagedFile(f"{id!r:.80} cannot be the id of a builder")
    if not isinstance(document, dict):
        raise DamagedFile(f"The record of builder {id} is not an object")
    values: dict[str, Any] = {"worktree": str(paths.worktree(id)), **document}
    if missing := sorted(_NAMES - values.keys()):
        raise DamagedFile(f"The record of builder {id} lacks {', '.join(missing)}")
    if unknown := sorted(values.keys() - _NAMES):
        raise DamagedFile(f"The record of builder {id} has unknown fields: {', '.join(unknown)}")
    if values["id"] != id or values["state"] not in RECORD_STATES:
        raise DamagedFile(f"The record of builder {id} contradicts itself")
    if values["type"] not in BUILDER_TYPES:
        raise DamagedFile(f"The record of builder {id} has the unknown type {values['type']!r}")
    for name, value in values.items():
        if not _is_of_its_kind(name, value) or not _is_plausible(name, value):
            raise DamagedFile(f"The record of builder {id} has {value!r:.60} as {name}")
    return BuilderRecord(**values | _here(id, values, paths))


def _here(id: str, values: Mapping[str, Any], paths: FarmPaths) -> dict[str, Any]:
    """What the farm's place gives. Records of earlier versions hold it as it was when they were written."""
    role = values["role"]
    known = values["session"] in paths.sessions(id)
    return {
        "worktree": str(paths.worktree(id)),
        "session": values["session"] if known else paths.session(id),
        "prompt_file": None if values["prompt_file"] is None else str(RunPaths(paths.run(id)).prompt),
        "role": None if role is None else str(paths.root / role),
        "files": tuple(values["files"]),
        "ports": tuple(values["ports"]),
    }


_MAYBE = frozenset(
    {"model", "prompt_file", "role", "task_text", "protocol_name", "spec", "conversation_id", "reason"}
)
_LISTS = {"files": str, "ports": int}
_FLAGS = frozenset({"new_branch", "ephemeral"})


def _is_of_its_kind(name: str, value: object) -> bool:
    if name in _FLAGS:
        return isinstance(value, bool)
    if name in _LISTS:
        return isinstance(value, list) and all(type(item) is _LISTS[name] for item in value)
    if name == "protocol_args":
        return value is None or isinstance(value, dict)
    return isinstance(value, str) or (value is None and name in _MAYBE)


_FORMS = {
    "base_commit": re.compile(r"[0-9a-f]{40}"),
    "run": re.compile(r"[0-9a-f]{8,64}"),
    "session": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*"),
    "runtime": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*"),
    "created_at": re.compile(r"[0-9T:.+Z-]+"),
}


def _is_plausible(name: str, value: Any) -> bool:
    """What could do harm where it is used: paths, refs, words that begin like an option."""
    if value is None:
        return True
    if form := _FORMS.get(name):
        return form.fullmatch(value) is not None
    if name == "branch":
        return is_branch_name(value)
    if name == "ports":
        return all(0 < port < 65536 for port in value)
    if name in ("base", "model", "conversation_id"):
        return not value.startswith("-") and value.isprintable()
    if name == "subdirectory":
        return value == "" or is_below(value)
    if name == "socket":
        return Path(value).is_absolute() and "\0" not in value
    return True

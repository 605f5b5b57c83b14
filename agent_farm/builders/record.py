"""BuilderRecord: what `af` decided about one builder, as `registry.json` keeps it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from agent_farm.builders.config import BUILDER_TYPES, BuilderType
from agent_farm.builders.ref_names import is_branch_name
from agent_farm.errors import DamagedFile
from agent_farm.paths import WORKTREES_NAME, is_below, is_builder_id

RecordState = Literal["creating", "running", "stopped", "failed"]
RECORD_STATES = ("creating", "running", "stopped", "failed")
TASK_TEXT_KEPT = 500


@dataclass(frozen=True, slots=True)
class BuilderRecord:
    id: str
    type: BuilderType
    branch: str
    worktree: str
    session: str
    runtime: str
    model: str | None
    base: str
    base_commit: str
    prompt_file: str | None
    role: str | None
    task_text: str | None
    protocol_name: str | None
    protocol_args: Mapping[str, Any] | None
    spec: str | None
    files: tuple[str, ...]
    ports: tuple[int, ...]
    conversation_id: str | None
    created_at: str
    state: RecordState
    reason: str | None
    # What a later start of the same builder needs to be like the first.
    run: str
    socket: str
    permissions: str
    subdirectory: str
    new_branch: bool
    ephemeral: bool

    @property
    def worktree_path(self) -> Path:
        return Path(self.worktree)

    @property
    def title(self) -> str:
        """One line that tells a person what this builder is for."""
        if self.task_text:
            return " ".join(self.task_text.split())
        return self.spec or self.protocol_name or "shell"

    def with_state(self, state: RecordState, reason: str | None = None) -> BuilderRecord:
        return replace(self, state=state, reason=reason)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def record_from_json(id: str, document: object) -> BuilderRecord:
    """Refuses what it does not know, so that a damaged record is never half read.

    Records are input from outside: what becomes a path, a ref or an argument has the form that af gives it.
    """
    if not is_builder_id(id):
        raise DamagedFile(f"{id!r:.80} cannot be the id of a builder")
    if not isinstance(document, dict):
        raise DamagedFile(f"The record of builder {id} is not an object")
    names = {field.name for field in fields(BuilderRecord)}
    if missing := sorted(names - document.keys()):
        raise DamagedFile(f"The record of builder {id} lacks {', '.join(missing)}")
    if unknown := sorted(document.keys() - names):
        raise DamagedFile(f"The record of builder {id} has unknown fields: {', '.join(unknown)}")
    if document["id"] != id or document["state"] not in RECORD_STATES:
        raise DamagedFile(f"The record of builder {id} contradicts itself")
    if document["type"] not in BUILDER_TYPES:
        raise DamagedFile(f"The record of builder {id} has the unknown type {document['type']!r}")
    for name, value in document.items():
        if not _is_of_its_kind(name, value) or not _is_plausible(name, value):
            raise DamagedFile(f"The record of builder {id} has {value!r:.60} as {name}")
    values = dict(document)
    values["files"] = tuple(values["files"])
    values["ports"] = tuple(values["ports"])
    return BuilderRecord(**values)


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
    if name == "worktree":
        return Path(value).is_absolute() and Path(value).parent.name == WORKTREES_NAME
    if name == "socket":
        return Path(value).is_absolute() and "\0" not in value
    return True

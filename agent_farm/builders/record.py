"""One builder on record: what `af` decided about it, how that is stored, and how it is checked when read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, structs

from agent_farm.builders.config import BuilderType
from agent_farm.builders.ref_names import ObjectName, is_branch_name
from agent_farm.errors import DamagedFile, NotFound
from agent_farm.launch import is_no_option
from agent_farm.paths import FarmPaths, RunPaths, is_below, is_builder_id

RecordState = Literal["queued", "creating", "running", "stopped", "failed"]
TASK_TEXT_KEPT = 500

# Records are outside input: whatever becomes a path, a ref or an argument must look as af would write it.
_Word = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")]
_Moment = Annotated[str, Meta(pattern=r"\A[0-9T:.+Z-]+\Z")]
_Run = Annotated[str, Meta(pattern=r"\A[0-9a-f]{8,64}\Z")]
_Port = Annotated[int, Meta(ge=1, le=65535)]


class BuilderRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    type: BuilderType
    branch: str
    worktree: str
    session: _Word
    runtime: _Word
    model: str | None
    base: str
    base_commit: ObjectName
    prompt_file: str | None
    role: str | None
    task_text: str | None
    protocol_name: str | None
    protocol_args: dict[str, Any] | None
    spec: str | None
    files: tuple[str, ...]
    ports: tuple[_Port, ...]
    conversation_id: str | None
    created_at: _Moment
    state: RecordState
    reason: str | None
    # What a later start of the same builder needs in order to be like the first.
    run: _Run
    socket: str
    permissions: str
    subdirectory: str
    new_branch: bool
    ephemeral: bool
    # The address of the issue that it works on.
    issue: str | None = None
    # Builders (A,B) whose work has to land before this one starts; the builder on whose branch it is based.
    after: str | None = None
    stack: str | None = None
    # The item it was spawned from: the file or tracker, the item's key and its title, separated by #.
    source: str | None = None
    # The parts of the user's own configuration that it may use.
    unlocked: tuple[_Word, ...] = ()
    # The phases of its protocol, and the one that it reported last.
    phases: tuple[_Word, ...] = ()
    phase: _Word | None = None
    # The directories of a sparse checkout; if empty, everything that the main checkout has.
    sparse: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuses values that could do harm where they are used and that their type does not rule out."""
        for name, good in (
            ("branch", is_branch_name(self.branch)),
            ("subdirectory", self.subdirectory == "" or is_below(self.subdirectory)),
            ("sparse", not self.sparse or all(map(is_below, self.sparse))),
            ("socket", self.socket.startswith("/") and "\0" not in self.socket),
            ("base", is_no_option(self.base)),
            ("model", self.model is None or is_no_option(self.model)),
            ("conversation_id", self.conversation_id is None or is_no_option(self.conversation_id)),
        ):
            if not good:
                raise ValueError(f"{getattr(self, name)!r:.60} cannot be its {name}")

    @property
    def worktree_path(self) -> Path:
        return Path(self.worktree)

    @property
    def awaits(self) -> tuple[str, ...]:
        """The builders whose work has to land before this one starts."""
        return tuple(self.after.split(",")) if self.after else ()

    @property
    def title(self) -> str:
        """What this builder is for, in one line."""
        subject = " ".join(self.task_text.split()) if self.task_text else ""
        if self.spec and not self.task_text:
            subject = Path(self.spec).stem
        how = " ".join([self.protocol_name or "", *self._phase()]).strip()
        if subject:
            return f"{how}: {subject}" if how else subject
        return " ".join([how or "shell", *_shown(self.protocol_args or {})])

    def _phase(self) -> list[str]:
        """`plan 2/5`, once the builder has reported a phase."""
        if self.phase not in self.phases:
            return []
        return [str(self.phase), f"{self.phases.index(self.phase) + 1}/{len(self.phases)}"]

    @property
    def is_made(self) -> bool:
        """Whether it should have a worktree by now."""
        return self.state not in ("queued", "creating")

    def require_begun(self) -> None:
        if not self.is_made:
            raise NotFound(f"{self.id} has not started", why="It has no work yet.", hint="af queue")

    def with_state(self, state: RecordState, reason: str | None = None) -> BuilderRecord:
        return structs.replace(self, state=state, reason=reason)

    def at_rest(self, reason: str) -> BuilderRecord:
        """Stopped; one whose start was cut short stays failed, as its worktree may not be whole."""
        return self if self.state == "failed" else self.with_state("stopped", reason)

    def to_json(self) -> dict[str, Any]:
        return structs.asdict(self)


def draw_run() -> str:
    """The name of one start of a builder, by which its events are recognised."""
    return os.urandom(6).hex()


def stored_record(record: BuilderRecord, paths: FarmPaths) -> dict[str, Any]:
    """What is stored: no path that follows from the id and the farm's place, since farms are moved."""
    document = record.to_json()
    del document["worktree"]
    if record.prompt_file is not None:
        document["prompt_file"] = RunPaths(Path()).prompt.name
    if record.role is not None and Path(record.role).is_relative_to(paths.root):
        document["role"] = os.path.relpath(record.role, paths.root)
    return document


def record_from_json(id: str, document: object, paths: FarmPaths) -> BuilderRecord:
    """Refuses unknown fields, so that a damaged record is never half read."""
    if not is_builder_id(id):
        raise DamagedFile(f"{id!r:.80} cannot be the id of a builder")
    if not isinstance(document, dict):
        raise DamagedFile(f"The record of builder {id} is not an object")
    try:
        record = convert({"worktree": "", **document}, BuilderRecord)
    except (ValidationError, RecursionError) as error:
        raise DamagedFile(f"The record of builder {id} cannot be read: {error}") from error
    if record.id != id:
        raise DamagedFile(f"The record of builder {id} claims to be that of {record.id!r:.80}")
    return _here(record, paths)


def _here(record: BuilderRecord, paths: FarmPaths) -> BuilderRecord:
    """The record with paths of this farm's place; records of earlier versions hold those of back then.

    Changes `record` itself, which nobody else holds yet: a status reads hundreds, and a copy would be checked
    again.
    """
    structs.force_setattr(record, "worktree", f"{paths.worktrees}/{record.id}")
    if record.session != paths.session(record.id) and record.session not in paths.sessions(record.id):
        structs.force_setattr(record, "session", paths.session(record.id))
    if record.prompt_file is not None:
        structs.force_setattr(record, "prompt_file", str(RunPaths(paths.run(record.id)).prompt))
    if record.role is not None:
        structs.force_setattr(record, "role", str(paths.root / record.role))
    return record


def _shown(args: Mapping[str, Any]) -> list[str]:
    """`issue=1515 title=Login fails`: what distinguishes two builders of one protocol."""
    return [f"{name}={' '.join(str(value).split())}" for name, value in args.items()]

"""BuilderRecord: what `af` decided about one builder, as `registry.json` keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from agent_farm.builders.config import BuilderType

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
        if self.spec:
            return Path(self.spec).stem
        return " ".join([self.protocol_name or "shell", *_told(self.protocol_args or {})])

    def with_state(self, state: RecordState, reason: str | None = None) -> BuilderRecord:
        return replace(self, state=state, reason=reason)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def _told(args: Mapping[str, Any]) -> list[str]:
    """`issue=1515 title=Login fails`: what tells two builders of one protocol apart."""
    return [f"{name}={' '.join(str(value).split())}" for name, value in args.items()]

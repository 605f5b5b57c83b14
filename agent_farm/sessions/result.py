"""What a headless session gave: the one answer of `Spawner.trigger`, `af run` and the MCP tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)  # no slots: the MCP SDK reads the defaults from the class for the tool's schema
class SpawnerResult:
    """`success`: the run completed without error. `output` is kept either way, partial or whole.

    `failure` is the kind of the error, one of `runtimes.result.FailureKind`; `state` is that of the record,
    none for what was never accepted.
    """

    output: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    success: bool = True
    error: str | None = None
    session_id: str | None = None
    conversation_id: str | None = None
    duration: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    trace_id: str | None = None
    failure: str | None = None
    state: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def refused(reason: str) -> SpawnerResult:
    """A trigger that was never accepted; no session exists for it."""
    return SpawnerResult(success=False, error=reason)


def result_from(document: Mapping[str, Any]) -> SpawnerResult:
    """What a server said, which may be of another version: what is not known here is left out."""
    known = {one.name for one in fields(SpawnerResult)}
    return SpawnerResult(**{name: value for name, value in document.items() if name in known})


def result_of(record: Mapping[str, Any]) -> SpawnerResult:
    """What the record of an ended session says."""
    kept = {one.name: record[one.name] for one in fields(SpawnerResult) if record.get(one.name) is not None}
    return SpawnerResult(**{**kept, "session_id": record["id"]})

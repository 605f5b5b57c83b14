"""What a headless session gave: the one answer of `Spawner.trigger`, `af run` and the MCP tool."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)  # no slots: the MCP SDK reads the defaults from the class for the tool's schema
class SpawnerResult:
    """`success`: the run completed without error. `output` is kept either way, partial or whole."""

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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def refused(reason: str) -> SpawnerResult:
    """A trigger that was never accepted; no session exists for it."""
    return SpawnerResult(success=False, error=reason)

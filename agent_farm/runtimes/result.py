"""The result of a headless run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_farm.errors import AgentFarmError, UsageError

FailureKind = Literal[
    "not-installed",
    "not-logged-in",
    "refused-argument",
    "mcp-unreachable",
    "api-error",
    "limited",
    "turn-limit",
    "time-limit",
    "killed",
    "failed",
]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool that the model called; `result` is None as long as no answer was seen."""

    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    result: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of this run alone. `input_tokens` excludes tokens read from or written to a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    kind: FailureKind
    message: str

    def __str__(self) -> str:
        return self.message


def failure_of(error: Exception) -> Failure:
    """The failure that stands for this error in a result."""
    if isinstance(error, AgentFarmError):
        kind: FailureKind = "refused-argument" if isinstance(error, UsageError) else "failed"
        return Failure(kind, f"{error.what}: {error.why}" if error.why else error.what)
    return Failure("failed", str(error) or type(error).__name__)


@dataclass(frozen=True, slots=True)
class RuntimeResult:
    """`output` and `tool_calls` include what came before a failure. `cost` is in US dollars."""

    output: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    cost: float | None = None
    conversation_id: str | None = None
    turns: int = 0
    seconds: float = 0.0
    failure: Failure | None = None

    @property
    def success(self) -> bool:
        return self.failure is None

    @property
    def error(self) -> str | None:
        return self.failure.message if self.failure else None


# Receives the progress of a headless run.
OnProgress = Callable[[RuntimeResult], None]

"""Session: a request and its outcome in one value, which is one row of the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from agent_farm.errors import UsageError
from agent_farm.runtimes.cli import Permissions
from agent_farm.runtimes.result import FailureKind
from agent_farm.sessions.trigger_sources import require_trigger_source

SessionState = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]


class SessionWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller may choose about a session; None leaves it to the butler."""

    prompt: Annotated[str, Meta(description="What the session should do")]
    context: Annotated[str | None, Meta(description="Text to put before the prompt")] = None
    max_turns: Annotated[int, Meta(description="Maximum number of model turns", ge=1)] = 20
    runtime: Annotated[str | None, Meta(description="Runtime to use, as in claude-code")] = None
    model: Annotated[str | None, Meta(description="Model to ask the runtime for")] = None
    permissions: Annotated[
        Permissions | None,
        Meta(description="What it may do without asking: nothing, change files, or everything"),
    ] = None
    cwd: Annotated[str | None, Meta(description="Directory to run in; default: the butler's own")] = None
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="End it after this many seconds"),
    ] = None


class SessionRequest(SessionWish, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wish, with what was found out about the caller."""

    trigger_source: Annotated[str, Meta(description="Who triggered it, for its record")] = "external"
    parent: Annotated[str | None, Meta(description="Id of the session that asks")] = None
    checkout: Annotated[str | None, Meta(description="The checkout that it is asked about")] = None
    resumes: Annotated[str | None, Meta(description="Id of a session whose conversation to continue")] = None
    host: Annotated[str | None, Meta(description="Machine of the fleet that runs it; null: this one")] = None
    for_home: Annotated[
        bool, Meta(description="Run for another machine, which has not recorded its end yet")
    ] = False

    @property
    def whole_prompt(self) -> str:
        return f"{self.context}\n\n{self.prompt}" if self.context else self.prompt

    def require_good(self) -> None:
        """Refuses what a record cannot store, or a program's arguments and input cannot carry."""
        require_trigger_source(self.trigger_source)
        _require_text("prompt", self.prompt)
        for name in ("context", "runtime", "model", "cwd", "parent", "checkout", "resumes", "host"):
            _require_text(name, getattr(self, name) or "-")
        if self.max_turns < 1:
            raise UsageError(f"max_turns is {self.max_turns}; at least one turn is needed")
        if self.timeout == math.inf:  # JSON has no infinity
            raise UsageError("The timeout is infinite", why="Give a number of seconds.")


class Session(SessionRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The record of a session, in its present state."""

    id: str
    butler: str
    runtime: str
    state: SessionState = "queued"
    trace_id: str | None = None
    conversation_id: Annotated[str | None, Meta(description="The runtime's own name for it")] = None
    output: str | None = None
    error: str | None = None
    failure: Annotated[FailureKind | None, Meta(description="The kind of the error")] = None
    success: Annotated[bool | None, Meta(description="Null until it has ended")] = None
    tool_calls: Annotated[
        list[dict[str, Any]] | int | None, Meta(description="In a list of sessions: their number")
    ] = None
    duration: Annotated[float | None, Meta(description="Duration in seconds")] = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: Annotated[float | None, Meta(description="If the runtime reports it")] = None
    created_at: Annotated[float | None, Meta(description="Times are in seconds since 1970")] = None
    started_at: float | None = None
    ended_at: float | None = None
    home: Annotated[str | None, Meta(description="Name of the place where its conversation is kept")] = None

    @property
    def result(self) -> SpawnerResult:
        known = {one.name: getattr(self, one.name, None) for one in fields(SpawnerResult)}
        known["session_id"] = self.id
        return SpawnerResult(**{name: value for name, value in known.items() if value is not None})


@dataclass(frozen=True, slots=True)
class SpawnerResult:
    """The result of a session: the same for `Spawner.trigger`, `af run` and the MCP tool.

    `success`: the run completed without error. `output` is kept either way, complete or not. `failure` is the
    kind of error, one of `runtimes.result.FailureKind`; `state` is the record's, None for a session that was
    never accepted.
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


def refused(reason: str) -> SpawnerResult:
    """The result of a trigger that was never accepted; it has no session."""
    return SpawnerResult(success=False, error=reason)


@dataclass(frozen=True, slots=True)
class Progress:
    """`event` is queued, running, tool or ended."""

    session_id: str
    event: str
    detail: Mapping[str, Any]


Observer = Callable[[Progress], None]


def _require_text(what: str, text: str) -> None:
    if not text.strip():
        raise UsageError(f"The {what} is empty")
    if "\0" in text:
        raise UsageError(f"The {what} contains NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"The {what} is not UTF-8 text", why=str(error)) from error

"""Turns a CLI's stream of JSON lines, and the way it ended, into a RuntimeResult."""

from __future__ import annotations

import errno
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.result import Failure, FailureKind, RuntimeResult, ToolCall, Usage, failure_of

if TYPE_CHECKING:
    from agent_farm.runtimes.process import Ended

Event = Mapping[str, Any]

# the CLIs' names for tools that look at files
_TOOLS = re.compile(
    r"(?i)(read|view|grep|glob|ls|list|search|notebook)"
    r"|(read|read_many|search|list|view)_(files?|file_content|directory)|grep_search|list_dir"
)
_SHELLS = re.compile(r"(?i)bash|shell|(run_)?shell_command|local_shell|exec_command|command_execution")
_READERS = re.compile(
    r"\s*(cd\s[^&;|]*(&&|;)\s*)?(cat|grep|rg|ls|find|head|tail|sed|awk|wc|tree|less|stat|file)\b"
)
# in the CLIs' words
_REFUSED = re.compile(
    r"(?i)haven't granted|requires? approval|was blocked|permission (to use .* )?(has been )?denied|denied by"
    r"|not in workspace|outside the allowed|a rule which prevents|permission settings|rejected permission"
)


class LineParser(ABC):
    """Subclasses interpret events; this class collects what they find, and judges the end.

    `turns` counts the model's answers. A runtime without a limit of its own is ended when that passes
    `max_turns`; `counts_turns` is False if the CLI enforces the limit itself.
    """

    counts_turns = True
    refusals: ClassVar[
        tuple[str, ...]
    ] = ()  # its words for an argument or a conversation that it does not take
    error_line = "(?i)error"  # how the line begins that says what is wrong, if that is not the last line
    answered_is_done = False  # an exit code after a complete answer means nothing

    def __init__(self, start: Start) -> None:
        self.start = start
        self.max_turns = start.max_turns
        self.output = ""
        self.calls: dict[str, ToolCall] = {}
        self.usage = Usage()
        self.cost: float | None = None
        self.conversation_id: str | None = None
        self.turns = 0
        self._is_speaking = False
        self.said = ""  # the last line that was not an event
        self.failure: Failure | None = None
        self.finished = False
        self.is_hopeless = False  # has failed, but would go on trying, so it is ended at once

    @abstractmethod
    def event(self, event: Event) -> None:
        """Take in one event; set `finished` if it is the one that ends a run, and `failure` if it failed."""

    def explain(self, stderr: str, exit_code: int) -> Failure:
        """Why it ended with `exit_code`, if no event says so."""
        lines = [line.strip() for line in stderr.splitlines() if re.match(self.error_line, line.strip())]
        said = next(iter(lines), last_line(stderr)) or f"ended with exit code {exit_code}"
        refused = any(word in stderr for word in self.refusals)
        return Failure("refused-argument" if refused else "failed", said)

    def line(self, text: str) -> str | None:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            self.said = text.strip() or self.said
            return None
        try:
            self.event(event)
        except (AgentFarmError, OSError) as error:
            self.failure = self.failure or failure_of(error)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            name = f"{type(error).__name__}: {error}"
            self.fail("failed", f"an event {str(event.get('type'))[:80]!r} that cannot be read ({name})")
        if self.failure and (self.is_hopeless or self.failure.kind == "mcp-unreachable"):
            return self.failure.kind
        if self.counts_turns and self.turns > self.max_turns:
            self.fail("turn-limit", turn_limit(self.max_turns))
            return "turn-limit"
        return None

    def fail(self, kind: FailureKind, message: str) -> None:
        """Record a failure; the first is the cause, later ones are its consequences."""
        self.failure = self.failure or Failure(kind, message)

    def fail_api(self, status: int | None, message: str) -> None:
        """Record an API error; those about the key or the login are distinguished."""
        self.fail("not-logged-in" if status in (401, 403) else "api-error", message)

    def speaks(self) -> None:
        """The model says or calls something: one turn, until its calls are answered."""
        if not self._is_speaking:
            self.turns += 1
            self._is_speaking = True

    def call(self, key: str, name: str, given: object) -> None:
        self.calls[key] = ToolCall(name, given if isinstance(given, Mapping) else {"input": given})

    def answer(self, key: str, result: str | None, *, is_error: bool = False) -> None:
        self._is_speaking = False
        if key in self.calls:
            self.calls[key] = replace(self.calls[key], result=result, is_error=is_error)

    def result(self, ended: Ended, timeout: float | None) -> RuntimeResult:
        return self.told(self._judge(ended, timeout))

    def told(self, failure: Failure | None) -> RuntimeResult:
        """The result of what it has received so far."""
        return RuntimeResult(
            output=self.output,
            tool_calls=tuple(self.calls.values()),
            usage=self.usage,
            cost=self.cost,
            conversation_id=self.conversation_id,
            turns=self.turns,
            failure=failure,
        )

    def _judge(self, ended: Ended, timeout: float | None) -> Failure | None:
        if ended.cannot_start:
            is_there = os.strerror(errno.E2BIG) in ended.cannot_start
            kind: FailureKind = "refused-argument" if is_there else "not-installed"
            return Failure(kind, f"cannot be started: {ended.cannot_start}")
        if ended.timed_out:
            return Failure("time-limit", f"ended after {timeout:g} seconds")
        if self.failure:
            return self.failure
        if ended.signal:
            return Failure("killed", f"killed by {ended.signal}")
        if ended.exit_code and not (self.answered_is_done and self.finished and self.output):
            return self.explain((last_line(ended.stderr) and ended.stderr) or self.said, ended.exit_code)
        if not self.finished and self.said.startswith("{"):
            return Failure("failed", "its output ended in the middle of an event")
        if not self.finished:
            return Failure("failed", last_line(ended.stderr) or self.said[:500] or "ended without a result")
        if refusal := refused_reading(tuple(self.calls.values())):
            return Failure("failed", f"it was denied everything it asked to read: {refusal}")
        if not self.output.strip() and not self.calls:
            return Failure("failed", "it ended without saying or doing anything")
        return None


def refused_reading(calls: Sequence[ToolCall]) -> str | None:
    """The text of the first refusal, if there were reads and all of them were refused.

    Such a run has seen nothing of what it was asked about, whatever it claims.
    """
    reads = [call for call in calls if _reads(call)]
    refusals = [call for call in reads if call.is_error and _REFUSED.search(call.result or "")]
    if not reads or len(refusals) < len(reads):
        return None
    return " ".join((refusals[0].result or "").split())[:300]


def _reads(call: ToolCall) -> bool:
    if _TOOLS.fullmatch(call.name):
        return True
    command = next((call.input[key] for key in ("command", "cmd", "input") if key in call.input), "")
    return bool(_SHELLS.fullmatch(call.name)) and bool(_READERS.match(str(command)))


def turn_limit(turns: int) -> str:
    return f"ended after {turns} turn{'' if turns == 1 else 's'}"


def last_line(text: str) -> str:
    """The last line with text, without colours."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    return lines[-1][:500] if lines else ""


def text_of(content: object) -> str:
    """The text in a tool's result, in any of the forms that CLIs use."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        for field in ("text", "content", "output", "result"):
            if field in content:
                return text_of(content[field])
        return json.dumps(content)
    if isinstance(content, (list, tuple)):
        return "\n".join(text_of(part) for part in content)
    return str(content)


def status_in(message: str) -> int | None:
    """The HTTP status named in an API's error message."""
    found = re.search(r"\b([45]\d\d)\b", message)
    return int(found[1]) if found else None


def usage_of(given: object, output: object, cached: object, written: object = 0) -> Usage:
    """From counts in which `given` includes what came from a cache."""
    read = number(cached)
    return Usage(max(0, number(given) - read), number(output), read, number(written))


def number(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0

"""Runs a headless CLI to its result; if it is interrupted, the output so far is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from agent_farm.runtimes.cli import Cli
from agent_farm.runtimes.lines import LineParser
from agent_farm.runtimes.process import TOO_LONG, Command, run_guarded
from agent_farm.runtimes.result import Failure, RuntimeResult
from agent_farm.usage_limits import limit_in

MOST_CALLS = 10_000
MOST_CHARACTERS = 1 << 26


class Interrupted(asyncio.CancelledError):
    """`partial` has usage and cost only as far as the runtime has reported them."""

    def __init__(self, partial: RuntimeResult) -> None:
        super().__init__()
        self.partial = partial


async def run_lines(command: Command, parser: LineParser) -> RuntimeResult:
    """If it is cancelled, it raises Interrupted."""
    try:
        ended = await run_guarded(command, _hearing(parser))
    except asyncio.CancelledError as error:
        raise Interrupted(parser.told(Failure("killed", "interrupted"))) from error
    return parser.result(ended, command.timeout)


def _hearing(parser: LineParser) -> Callable[[str], str | None]:
    """Calls `parser.line`, and reports progress if somebody listens."""
    tell = parser.start.on_progress
    seen = (0, 0, "")

    def line(text: str) -> str | None:
        nonlocal seen
        if text == TOO_LONG:
            parser.fail("failed", "a line of its output is too long to be read")
            return "failed"
        verdict = parser.line(text)
        if len(parser.calls) > MOST_CALLS or len(parser.output) > MOST_CHARACTERS:
            parser.fail("failed", "it did not stop: more tool calls or text than can be kept")
            return "failed"
        answered = sum(call.result is not None for call in parser.calls.values())
        if tell and (now := (len(parser.calls), answered, parser.output)) != seen:
            seen = now
            tell(parser.told(None))
        return verdict

    return line


def with_limits(cli: Cli, result: RuntimeResult) -> RuntimeResult:
    """An error whose message names a usage limit becomes a `limited` failure."""
    failure = result.failure
    if failure is None or failure.kind not in ("api-error", "failed"):
        return result
    limit = limit_in(failure.message, cli.limited)
    return replace(result, failure=Failure("limited", limit)) if limit else result

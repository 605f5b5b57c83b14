"""Running an agent: its output becomes progress for the user, and finally the answer.

A CLI that prints nothing until its answer is complete is asked for its events instead. Output without a
recognizable answer is taken as it is, so that another version's plain answer still counts.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from agent_farm.ask.agents import Agent, answering_clis
from agent_farm.ask.clean_end import run_to_its_end
from agent_farm.errors import AgentFarmError, TimedOut
from agent_farm.launch import Launch
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.lines import LineParser
from agent_farm.runtimes.process import Command, Ended, run_guarded

Narrate = Callable[[str], None]
_SILENCE_SECONDS = 15.0
_SAID_KEPT = 16_384
_SHOWN = 160
_NO_LIMIT = 1_000_000  # turns
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


class AgentFailed(AgentFarmError):
    """The agent ran and failed; its own words are part of the message."""

    code = "agent-failed"

    def __str__(self) -> str:
        return "\n".join(part for part in (self.what, self.why) if part)


class Transcript:
    """Reads an agent's output, reports what it does, and says that it is alive while it is silent."""

    def __init__(
        self, parser: LineParser | None, narrate: Narrate, clock: Callable[[], float] = time.monotonic
    ):
        self._parser, self._narrate, self._clock = parser, narrate, clock
        self._began = self._told = clock()
        self._raw: list[str] = []
        self._calls = 0

    def hear(self, line: str) -> str | None:
        """Takes a line with its line end; returns why the agent may be stopped early, if it may."""
        self._raw.append(line)
        if self._parser is None:
            return None
        verdict = self._parser.line(line)
        calls = list(self._parser.calls.values())
        for call in calls[self._calls :]:
            self._tell(_shortened(" ".join([call.name, *map(str, call.input.values())])))
        self._calls = len(calls)
        return verdict

    def hear_error(self, line: str) -> None:
        self._tell(_plain(line))

    def tick(self) -> None:
        now = self._clock()
        if now - self._told >= _SILENCE_SECONDS:
            self._tell(f"… still at work after {now - self._began:.0f} s")

    @property
    def answer(self) -> str:
        told = self._parser.output if self._parser else ""
        return told or "".join(self._raw)

    @property
    def failure(self) -> str | None:
        """What the agent itself said went wrong, or that its events contain no answer."""
        if self._parser is None:
            return None
        if self._parser.failure:
            return self._parser.failure.message
        spoke = self._parser.conversation_id or self._parser.turns or self._parser.finished
        said = f"it gave no answer; its last output: {self._raw[-1][:500]}" if self._raw else None
        return said if spoke and not self._parser.output else None

    def _tell(self, text: str) -> None:
        if text.strip():
            self._told = self._clock()
            self._narrate(text.rstrip())


def run_agent(agent: Agent, launch: Launch, given: bytes, narrate: Narrate, timeout: float | None) -> str:
    """The answer. AgentFailed with the agent's own words when it fails; TimedOut after `timeout` seconds.

    None of its processes is left afterwards, nor is `launch.cwd` if this process is killed.
    """
    transcript = Transcript(parser_of(agent.output, launch), narrate)
    command = Command(launch.argv, launch.cwd, launch.env, given, scratch=launch.cwd, timeout=timeout)
    ended = run_to_its_end(_run(command, transcript))
    if ended.timed_out:
        raise TimedOut(f"No answer within {timeout:g} seconds", hint="af ask --timeout SECONDS …")
    if ended.exit_code or ended.signal or ended.cannot_start or transcript.failure:
        stderr = _plain(ended.stderr)
        said = transcript.failure or ("" if stderr else transcript.answer[-_SAID_KEPT:])
        parts = (_start_failure(ended) or "", said.strip(), stderr.strip())
        why = "\n".join(part for part in parts if part)
        raise AgentFailed(f"{agent.name} {_how_it_ended(ended)}", why=why or None)
    return transcript.answer


def parser_of(output: str, launch: Launch) -> LineParser | None:
    """The parser for the events that `output` names; None for plain text."""
    found = next((cli for cli, ask in answering_clis() if ask.output == output != "text"), None)
    if found is None:
        return None
    scratch = Path(launch.cwd) / ".scratch"
    return found.events(
        Start(
            mode="ask",
            env=launch.env,
            cwd=launch.cwd,
            home=scratch,
            place=scratch,
            top=launch.cwd,
            max_turns=_NO_LIMIT,
        )
    )


def _how_it_ended(ended: Ended) -> str:
    if ended.cannot_start:
        return "cannot be started"
    if ended.signal:
        return f"was ended by {ended.signal}"
    return f"ended with exit code {ended.exit_code}" if ended.exit_code else "has failed"


def _start_failure(ended: Ended) -> str | None:
    if ended.cannot_start and os.strerror(errno.E2BIG) in ended.cannot_start:
        return "a word of its command is too long; pass the prompt as standard input or as {prompt_file}"
    return ended.cannot_start


async def _run(command: Command, transcript: Transcript) -> Ended:
    async def tick() -> None:
        while True:
            await asyncio.sleep(1.0)
            transcript.tick()

    ticking = asyncio.ensure_future(tick())
    try:
        return await run_guarded(command, transcript.hear, transcript.hear_error)
    finally:
        ticking.cancel()


def _plain(text: str) -> str:
    """`text` without colours and cursor movements."""
    return _ESCAPE.sub("", text)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"

"""Ask a question, or chat, about local sources: the user's own CLI in a directory that sees only those."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from agent_farm.errors import AgentFarmError, ToolMissing, UsageError
from agent_farm.launch import Launch
from agent_farm.lctx.agents import Agent
from agent_farm.lctx.child import Ended, run_headless
from agent_farm.lctx.config import ConfigManager
from agent_farm.lctx.ending import ending_cleanly
from agent_farm.lctx.environment import agent_environment, require_outside
from agent_farm.lctx.progress import Progress
from agent_farm.lctx.room import Room, prepared_room
from agent_farm.lctx.shipped import INSTALL, SHIPPED
from agent_farm.lctx.sources import SourcesManager
from agent_farm.lctx.template import fill_template, load_template, require_question
from agent_farm.lctx.transcript import Transcript, transcript_of
from agent_farm.runtimes.claude_code import bundled_claude

Narrate = Callable[[str], None]
_SAID_KEPT = 16_384


class Answer(TypedDict):
    answer: str


class AgentFailed(AgentFarmError):
    """The agent ran and ended badly; its own words are part of the message."""

    code = "agent-failed"

    def __str__(self) -> str:
        return "\n".join(part for part in (self.what, self.why) if part)


class SubagentRunner:
    """`agent` is one of the configuration, its default without one. `narrate` gets progress, line by line."""

    def __init__(
        self,
        config: ConfigManager,
        sources: SourcesManager,
        *,
        narrate: Narrate | None = None,
        environ: Mapping[str, str] | None = None,
        agent: str | None = None,
    ) -> None:
        self.config = config
        self.sources = sources
        self._agent = agent
        self._narrate = narrate or (lambda text: None)
        self._environ = os.environ if environ is None else environ

    def ask(self, *, sources: Sequence[str], question: str, timeout: float | None = None) -> Answer:
        """The agent's answer. AgentFailed with its stderr when it ends badly; TimedOut after `timeout` s."""
        with self._room(sources) as room:
            require_question(question)
            agent = self.config.agent(self._agent)
            template = load_template(self.config, self._narrate)
            room.prompt_file.write_bytes(
                fill_template(
                    template,
                    question=question,
                    sources_list=room.sources_list(),
                    source_paths=room.source_paths(),
                )
            )
            launch, stdin = self._launch(agent, "ask", room)
            names = ", ".join(source.name for source in room.sources)
            self._narrate(f"Asking {agent.name} about {names}")
            return {"answer": self._run(agent, launch, stdin, timeout)}

    def chat(self, *, sources: Sequence[str]) -> None:
        """The agent in this terminal, until it ends."""
        from agent_farm.lctx.terminal import run_in_terminal

        with self._room(sources) as room:
            agent = self.config.agent(self._agent)
            launch, _ = self._launch(agent, "chat", room)
            for source in room.sources:
                self._narrate(f"{source.name}: {room.readable[source.name]}")
            code = run_in_terminal(launch)
        if code not in (0, 130, -signal.SIGINT):
            why = None if sys.stdin.isatty() else "stdin is no terminal, and most CLIs need one for a chat"
            raise AgentFailed(f"{agent.name} {_how(code)}", why=why)

    @contextmanager
    def _room(self, names: Sequence[str]) -> Iterator[Room]:
        require_outside(self._environ)
        if not names:
            raise self._nothing_asked_about()
        with ending_cleanly(), prepared_room(self.sources.require(names), self._tmp()) as room:
            yield room

    def _launch(self, agent: Agent, verb: str, room: Room) -> tuple[Launch, Path | None]:
        words = agent.command(verb)
        env = agent_environment(self._environ, words[0], agent.passes)
        placeholders = room.placeholders(env)
        env |= {name: placeholders.text(value) for name, value in agent.env.items()}
        program = placeholders.text(words[0])
        argv = (self._find_program(agent, program, env), *placeholders.argv(words[1:]))
        for path in placeholders.lists["source_dirs"]:
            argv += tuple(word.replace("{path}", path) for word in agent.each_source)
        stdin = Path(placeholders.text(agent.stdin)) if agent.stdin and verb == "ask" else None
        return Launch(argv, room.directory, env), stdin

    def _run(self, agent: Agent, launch: Launch, stdin: Path | None, timeout: float | None) -> str:
        transcript, progress = transcript_of(agent.output), Progress(self._narrate)
        ended = run_headless(
            launch,
            stdin=stdin,
            on_output=lambda line: progress.show(transcript.feed(line)),
            on_error=progress.take_stderr,
            on_tick=progress.tick,
            timeout=timeout,
        )
        if ended.exit_code != 0 or transcript.failure:
            raise self._failed(agent, ended, transcript, progress.stderr)
        return transcript.answer

    def _failed(self, agent: Agent, ended: Ended, transcript: Transcript, stderr: str) -> AgentFailed:
        how = (
            f"cannot be started: {ended.cannot_start}"
            if ended.cannot_start
            else _how(ended.exit_code, ended.signal)
        )
        said = transcript.failure or ("" if stderr else transcript.answer[-_SAID_KEPT:])
        why = "\n".join(part for part in (said.strip(), stderr.strip()) if part)
        hint = None
        if not self.config.is_shipped(agent.name) and "mcp" in why.lower():
            hint = f"remove {agent.name} from agents in {self.config.path} to use the shipped command"
        return AgentFailed(f"{agent.name} {how}", why=why or None, hint=hint)

    def _find_program(self, agent: Agent, program: str, env: Mapping[str, str]) -> str:
        """Absolute where it was given as a path; a bare name is found on the agent's own PATH."""
        path = env.get("PATH", os.defpath)
        found = shutil.which(program, path=path)
        if found is not None:
            return os.path.abspath(found) if os.sep in program else program
        if program == "claude" and (bundled := bundled_claude()):  # as `af run` finds it
            return str(bundled)
        others = [
            name for name, entry in SHIPPED.items() if shutil.which(entry["chat"].split()[0], path=path)
        ]
        raise ToolMissing(
            f"Agent {agent.name} needs {program}, which is not installed",
            why=f'{", ".join(others)} could answer: "defaultAgent" in {self.config.path} chooses'
            if others
            else None,
            hint=INSTALL.get(os.path.basename(program)) or f"set agents.{agent.name} in {self.config.path}",
        )

    def _tmp(self) -> Path:
        return Path(self._environ.get("TMPDIR") or tempfile.gettempdir())

    def _nothing_asked_about(self) -> UsageError:
        known = self.sources.overview()
        return UsageError(
            "Name the sources to ask about with -s" if known else "There are no sources to ask about yet",
            hint=f'af ask -s {known[0].name} "question"' if known else "af sources add NAME PATH|URL",
            evidence=[
                f"{source.name}  {source.kind}  {source.shown().get('url', source.path)}" for source in known
            ],
        )


def _how(code: int | None, killed_by: str | None = None) -> str:
    if code is not None and code < 0:
        killed_by = signal.Signals(-code).name
    return f"was ended by {killed_by}" if killed_by else f"ended with exit code {code}"

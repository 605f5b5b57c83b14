"""Asks a question, or chats, about local sources: the user's own CLI in a directory with only those."""

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

from agent_farm.ask.agent_environment import agent_environment, require_outside
from agent_farm.ask.agent_run import AgentFailed, run_agent
from agent_farm.ask.agents import Agent, answering_clis, cli_of
from agent_farm.ask.ask_directory import AskDirectory, ask_directory
from agent_farm.ask.chat_terminal import run_in_terminal
from agent_farm.ask.clean_end import ending_cleanly
from agent_farm.ask.config_file import ConfigManager
from agent_farm.ask.sources_manager import Source, SourcesManager
from agent_farm.ask.template import fill_template, load_template, require_question
from agent_farm.errors import ToolMissing, UsageError
from agent_farm.launch import Launch

Narrate = Callable[[str], None]


class Answer(TypedDict):
    answer: str


class SubagentRunner:
    """`agent` is one of the configuration, or None for the default. `narrate` gets lines of progress."""

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
        """The agent's answer. AgentFailed with its stderr when it fails; TimedOut after `timeout` seconds."""
        found = self._require(sources)
        require_question(question)
        agent = self.config.agent(self._agent)
        template = load_template(self.config, self._narrate)
        with self._directory(found) as directory:
            prompt = fill_template(
                template,
                question=question,
                sources_list=directory.sources_list(),
                source_paths=directory.source_paths(),
            )
            directory.prompt_file.write_bytes(prompt)
            launch, given = self._launch(agent, "ask", directory)
            names = ", ".join(source.name for source in found)
            self._narrate(f"Asking {agent.name} about {names}")
            try:
                return {"answer": run_agent(agent, launch, given, self._narrate, timeout)}
            except AgentFailed as error:
                if not self.config.is_shipped(agent.name) and "mcp" in (error.why or "").lower():
                    where = f"agents in {self.config.path}"
                    error.hint = f"remove {agent.name} from {where} to use the shipped command"
                raise

    def chat(self, *, sources: Sequence[str]) -> None:
        """Runs the agent in this terminal, until it ends."""
        found = self._require(sources)
        agent = self.config.agent(self._agent)
        with self._directory(found) as directory:
            launch, _ = self._launch(agent, "chat", directory)
            for source in found:
                self._narrate(f"{source.name}: {directory.readable[source.name]}")
            code = run_in_terminal(launch)
        if code not in (0, 130, -signal.SIGINT):
            why = None if sys.stdin.isatty() else "stdin is not a terminal, and most CLIs need one for a chat"
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise AgentFailed(f"{agent.name} {how}", why=why)

    def _require(self, names: Sequence[str]) -> tuple[Source, ...]:
        require_outside(self._environ)
        if names:
            return self.sources.require(names)
        known = self.sources.overview()
        raise UsageError(
            "Name the sources to ask about with -s" if known else "There are no sources to ask about yet",
            hint=f'af ask -s {known[0].name} "question"' if known else "af sources add NAME PATH|URL",
            evidence=[f"{source.name}  {source.kind}  {source.shown_url or source.path}" for source in known],
        )

    @contextmanager
    def _directory(self, sources: tuple[Source, ...]) -> Iterator[AskDirectory]:
        tmp = Path(self._environ.get("TMPDIR") or tempfile.gettempdir())
        with ending_cleanly(), ask_directory(sources, tmp) as directory:
            yield directory

    def _launch(self, agent: Agent, verb: str, directory: AskDirectory) -> tuple[Launch, bytes]:
        """The agent's command, and its standard input."""
        words = agent.command(verb)
        env = agent_environment(self._environ, words[0], agent.passes)
        placeholders = directory.placeholders(words[0], env)
        env |= {name: placeholders.text(value) for name, value in agent.env.items()}
        argv = self._find_program(agent, placeholders.text(words[0]), env) + placeholders.argv(words[1:])
        for path in placeholders.lists["source_dirs"]:
            argv += tuple(word.replace("{path}", path) for word in agent.each_source or ())
        given = Path(placeholders.text(agent.stdin)).read_bytes() if agent.stdin and verb == "ask" else b""
        return Launch(argv, directory.path, env), given

    def _find_program(self, agent: Agent, program: str, env: Mapping[str, str]) -> tuple[str, ...]:
        """An absolute path if `program` is a path; a bare name is looked up on the agent's own PATH."""
        path = env.get("PATH", os.defpath)
        found = shutil.which(program, path=path)
        if found is not None:
            return (os.path.abspath(found) if os.sep in program else program,)
        known = cli_of(program)
        if known and os.sep not in program and (bundled := known[0].bundled()):  # found as `af run` finds it
            return bundled
        others = [cli.name for cli, _ in answering_clis() if shutil.which(cli.binary, path=path)]
        could = f'{", ".join(others)} could answer: "defaultAgent" in {self.config.path} chooses'
        raise ToolMissing(
            f"Agent {agent.name} needs {program}, which is not installed",
            why=could if others else None,
            hint=known[0].install if known else f"set agents.{agent.name} in {self.config.path}",
        )

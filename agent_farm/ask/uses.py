"""What can be done with local sources, with plain values in and out: `af ask`, `af chat`, `af sources`.

`narrate` gets progress, line by line. All of them raise AgentFarmError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_farm.errors import AgentFarmError

if TYPE_CHECKING:
    from agent_farm.ask.sources import SourcesManager
    from agent_farm.ask.subagent_runner import Answer, SubagentRunner
    from agent_farm.ask.targets import Kind

Narrate = Callable[[str], None]


def ask(
    sources: Sequence[str],
    question: str,
    *,
    agent: str | None = None,
    runtime: str | None = None,
    timeout: float | None = None,
    environ: Mapping[str, str] | None = None,
    narrate: Narrate | None = None,
) -> Answer:
    """The answer of `agent`, else of the default one, which the farm's `runtime` may choose. It blocks.

    `environ` is the user's environment where that of this process is another, as a server's is.
    """
    runner = _runner(agent, runtime, environ, narrate)
    return runner.ask(sources=sources, question=question, timeout=timeout)


def chat(
    sources: Sequence[str],
    *,
    agent: str | None = None,
    runtime: str | None = None,
    narrate: Narrate | None = None,
) -> None:
    """The agent in this terminal, until it ends."""
    _runner(agent, runtime, None, narrate).chat(sources=sources)


def list_sources() -> list[dict[str, Any]]:
    """Name, type, path and, for git, URL without password and pin; `problem` is null for a readable one."""
    return [source.shown() for source in _sources().overview()]


def show_source(name: str) -> dict[str, Any]:
    return _sources().get(name).shown()


def add_source(
    name: str,
    target: str,
    *,
    kind: Kind | None = None,
    branch: str | None = None,
    commit: str | None = None,
    narrate: Narrate | None = None,
) -> dict[str, Any]:
    return _sources(narrate).add(name, target, kind=kind, branch=branch, commit=commit).shown()


def remove_source(name: str) -> Path | None:
    """Where the clone is kept, if somebody worked in it."""
    return _sources().remove(name)


def update_sources(
    names: Sequence[str] = (), *, narrate: Narrate | None = None
) -> tuple[list[dict[str, Any]], list[AgentFarmError]]:
    """Those that were brought to what their remotes have now, and why others were not; all without names."""
    manager = _sources(narrate)
    updated, failures = [], []
    for name in names or [source.name for source in manager.list() if source.kind == "git"]:
        try:
            updated.append(manager.update(name).shown())
        except AgentFarmError as error:
            failures.append(error)
    return updated, failures


def known_names() -> list[str]:
    """What `-s` takes: sources, and groups of them."""
    from agent_farm.ask.config_file import ConfigManager

    config = ConfigManager()
    return [*config.sources, *config.groups]


def _sources(narrate: Narrate | None = None) -> SourcesManager:
    from agent_farm.ask.config_file import ConfigManager
    from agent_farm.ask.sources import SourcesManager

    return SourcesManager(ConfigManager(), narrate=narrate)


def _runner(
    agent: str | None, runtime: str | None, environ: Mapping[str, str] | None, narrate: Narrate | None
) -> SubagentRunner:
    from agent_farm.ask.subagent_runner import SubagentRunner

    manager = _sources(narrate)
    chosen = agent or manager.config.agent_for(runtime)
    return SubagentRunner(manager.config, manager, narrate=narrate, environ=environ, agent=chosen)

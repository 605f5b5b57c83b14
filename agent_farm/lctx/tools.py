"""What a server offers to other agents: the same two questions, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_farm.lctx.config import ConfigManager
from agent_farm.lctx.runner import Answer, SubagentRunner
from agent_farm.lctx.sources import SourcesManager

TOOL_SECONDS = 900.0


def list_sources(config: ConfigManager | None = None) -> list[dict[str, Any]]:
    """Name, type, path and, for git, URL without password and pin; `problem` is null for a readable one."""
    return [source.shown() for source in SourcesManager(config or ConfigManager()).overview()]


def ask_sources(
    sources: Sequence[str],
    question: str,
    *,
    timeout: float | None = TOOL_SECONDS,
    config: ConfigManager | None = None,
    environ: Mapping[str, str] | None = None,
    runtime: str | None = None,
) -> Answer:
    """The answer of the default agent, which the farm's `runtime` may choose. Raises AgentFarmError.

    It blocks: a server calls it in a thread.

    `environ` is the user's environment where that of this process is another, as a server's is.
    """
    config = config or ConfigManager()
    agent = config.agent_for(runtime)
    runner = SubagentRunner(config, SourcesManager(config), environ=environ, agent=agent)
    return runner.ask(sources=sources, question=question, timeout=timeout)

"""Questions about local sources, answered by the user's own AI CLI in a throw-away directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_farm.ask.config_file import ConfigManager as ConfigManager
    from agent_farm.ask.sources_manager import Source as Source
    from agent_farm.ask.sources_manager import SourcesManager as SourcesManager
    from agent_farm.ask.subagent_runner import Answer as Answer
    from agent_farm.ask.subagent_runner import SubagentRunner as SubagentRunner

_HOMES = {
    "Answer": "subagent_runner",
    "ConfigManager": "config_file",
    "Source": "sources_manager",
    "SourcesManager": "sources_manager",
    "SubagentRunner": "subagent_runner",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

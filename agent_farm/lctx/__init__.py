"""Questions about local sources, answered by the user's own AI CLI in a throw-away directory."""

from agent_farm.lctx.config import ConfigManager
from agent_farm.lctx.runner import Answer, SubagentRunner
from agent_farm.lctx.sources import Source, SourcesManager
from agent_farm.lctx.tools import ask_sources, list_sources

__all__ = [
    "Answer",
    "ConfigManager",
    "Source",
    "SourcesManager",
    "SubagentRunner",
    "ask_sources",
    "list_sources",
]

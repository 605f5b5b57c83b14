"""Headless sessions: a queue, a log, memory, schedules, credentials, traces and an MCP server.

Names are imported on first use, because `af spawn` imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_farm.sessions.butlers import Butler as Butler
    from agent_farm.sessions.butlers import load_butler as load_butler
    from agent_farm.sessions.credential_store import CredentialStore as CredentialStore
    from agent_farm.sessions.database import Database as Database
    from agent_farm.sessions.memory import fetch_memory_context as fetch_memory_context
    from agent_farm.sessions.memory import store_session_episode as store_session_episode
    from agent_farm.sessions.mock import MockSpawner as MockSpawner
    from agent_farm.sessions.records import session_complete as session_complete
    from agent_farm.sessions.records import session_create as session_create
    from agent_farm.sessions.runner import Endpoint as Endpoint
    from agent_farm.sessions.session import SpawnerResult as SpawnerResult
    from agent_farm.sessions.spawner import Spawner as Spawner

_HOMES = {
    "Butler": "butlers",
    "CredentialStore": "credential_store",
    "Database": "database",
    "Endpoint": "runner",
    "MockSpawner": "mock",
    "Spawner": "spawner",
    "SpawnerResult": "session",
    "fetch_memory_context": "memory",
    "load_butler": "butlers",
    "session_complete": "records",
    "session_create": "records",
    "store_session_episode": "memory",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"agent_farm.sessions.{_HOMES[name]}"), name)

"""Headless sessions: a queue, a log, memory, schedules, credentials, traces and an MCP server.

Names are imported when first used, since `af spawn` passes through this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_farm.butler.credentials import CredentialStore as CredentialStore
    from agent_farm.butler.database import Database as Database
    from agent_farm.butler.identity import Butler as Butler
    from agent_farm.butler.identity import load_butler as load_butler
    from agent_farm.butler.memory import fetch_memory_context as fetch_memory_context
    from agent_farm.butler.memory import store_session_episode as store_session_episode
    from agent_farm.butler.mock import MockSpawner as MockSpawner
    from agent_farm.butler.order import Endpoint as Endpoint
    from agent_farm.butler.result import SpawnerResult as SpawnerResult
    from agent_farm.butler.sessions import session_complete as session_complete
    from agent_farm.butler.sessions import session_create as session_create
    from agent_farm.butler.spawner import Spawner as Spawner

_HOMES = {
    "Butler": "identity",
    "CredentialStore": "credentials",
    "Database": "database",
    "Endpoint": "order",
    "MockSpawner": "mock",
    "Spawner": "spawner",
    "SpawnerResult": "result",
    "fetch_memory_context": "memory",
    "load_butler": "identity",
    "session_complete": "sessions",
    "session_create": "sessions",
    "store_session_episode": "memory",
}

__all__ = [
    "Butler",
    "CredentialStore",
    "Database",
    "Endpoint",
    "MockSpawner",
    "Spawner",
    "SpawnerResult",
    "fetch_memory_context",
    "load_butler",
    "session_complete",
    "session_create",
    "store_session_episode",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

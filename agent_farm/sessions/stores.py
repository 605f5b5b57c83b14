"""Opens a farm's database and the records in it, from outside the server."""

from __future__ import annotations

from pathlib import Path

from agent_farm.disk import is_locked
from agent_farm.errors import AgentFarmError, ForeignFile
from agent_farm.git.ignoring import keep_apart
from agent_farm.git.repository import find_repository
from agent_farm.paths import FarmPaths
from agent_farm.server.address import server_files
from agent_farm.sessions.database import Database
from agent_farm.sessions.records import SessionLog


def open_database(root: Path) -> Database:
    """Works in a repository that never had a builder, too: git must not see what is created here."""
    try:
        keep_apart(find_repository(root))
    except ForeignFile:
        raise
    except AgentFarmError:  # no repository, or one that cannot be written to: the database will say so
        pass
    return Database(FarmPaths(root).state / "butler.db")


def open_sessions(root: Path) -> SessionLog:
    """The records, after marking those as interrupted that a server which is gone was running."""
    log = SessionLog(open_database(root))
    if log.has_unended() and not is_locked(server_files(root).lock):
        log.heal()
    return log

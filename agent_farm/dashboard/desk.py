"""Desk: what every answer of the dashboard is made with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_farm.builders.ids import match_builder
from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import NotFound
from agent_farm.farm.farm import Farm, open_farm

if TYPE_CHECKING:
    from agent_farm.butler.database import Database
    from agent_farm.butler.identity import Butler
    from agent_farm.butler.schedules import ScheduleStore
    from agent_farm.butler.sessions import SessionLog


@dataclass(slots=True)
class Desk:
    root: Path
    clock: Callable[[], float] = time.time
    _database: Database | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def farm(self) -> Farm:
        """Opened for each answer: settings may have changed."""
        return open_farm(self.root)

    def require(self, farm: Farm, id: str) -> BuilderRecord:
        """By its whole id: what a page sends never means another builder."""
        records = farm.records()
        if id in records:
            return records[id]
        if any(known.startswith(id) for known in records):
            raise NotFound(f"No builder {id}", hint="af status")
        match_builder(id, list(records))
        raise AssertionError("an unknown id was matched")

    def database(self) -> Database:
        from agent_farm.butler.service import open_database

        with self._lock:
            if self._database is None:
                self._database = open_database(self.root)
            return self._database

    def sessions(self) -> SessionLog:
        from agent_farm.butler.sessions import SessionLog
        from agent_farm.paths import FarmPaths

        return SessionLog(self.database(), FarmPaths(self.root).locks)

    def butler(self) -> Butler:
        from agent_farm.butler.identity import load_butler

        return load_butler(self.root, None)

    def schedules(self) -> ScheduleStore:
        from agent_farm.butler.schedules import ScheduleStore

        butler = self.butler()
        store = ScheduleStore(self.database(), butler.name)
        store.take_from_file(butler.schedules)
        return store

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

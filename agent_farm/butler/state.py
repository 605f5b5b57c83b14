"""A butler's key-value state, shared by its sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent_farm.butler.database import Database
from agent_farm.errors import UsageError


@dataclass(frozen=True, slots=True)
class StateStore:
    """Values are JSON; `get` of an unknown key is None. Another butler's keys are not seen."""

    database: Database
    butler: str
    clock: Callable[[], float] = time.time

    def get(self, key: str) -> Any:
        rows = self.database.query("SELECT value FROM state WHERE butler = ? AND key = ?", (self.butler, key))
        return json.loads(rows[0]["value"]) if rows else None

    def set(self, key: str, value: Any) -> None:
        if not key:
            raise UsageError("A state key cannot be empty")
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO state VALUES (?, ?, ?, ?) ON CONFLICT (butler, key) DO UPDATE"
                " SET value = excluded.value, updated_at = excluded.updated_at",
                (self.butler, key, json.dumps(value), self.clock()),
            )

    def items(self, prefix: str = "") -> dict[str, Any]:
        rows = self.database.query(
            "SELECT key, value FROM state WHERE butler = ? AND substr(key, 1, ?) = ? ORDER BY key",
            (self.butler, len(prefix), prefix),
        )
        return {row["key"]: json.loads(row["value"]) for row in rows}

    def delete(self, key: str) -> bool:
        """Whether there was something to delete."""
        with self.database.transaction() as connection:
            done = connection.execute("DELETE FROM state WHERE butler = ? AND key = ?", (self.butler, key))
            return done.rowcount == 1

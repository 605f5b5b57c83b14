"""A butler's key-value state, shared by its sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.launch import as_command
from agent_farm.sessions.database import Database


@dataclass(frozen=True, slots=True)
class StateStore:
    """Values are JSON; an unknown key has the value None. Other butlers' keys cannot be seen."""

    database: Database
    butler: str
    clock: Callable[[], float] = time.time

    def get(self, key: str) -> Any:
        return self.read(key)[0]

    def read(self, key: str) -> tuple[Any, int]:
        """The value and its revision; (None, 0) if there is none."""
        rows = self.database.query(
            "SELECT value, version FROM state WHERE butler = ? AND key = ?", (self.butler, key)
        )
        return (json.loads(rows[0]["value"]), rows[0]["version"]) if rows else (None, 0)

    def set(self, key: str, value: Any, *, if_revision: int | None = None) -> int:
        """Store a value; returns its new revision. With `if_revision` only if that is the present one, 0
        meaning none.

        No revision is used twice, not even after a delete, so a revision always stands for the same value.
        """
        if not key:
            raise UsageError("A state key cannot be empty")
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"The value of {key} is not JSON", why=str(error)) from error
        with self.database.transaction() as connection:
            self._require_revision(connection, key, if_revision)
            (version,) = connection.execute(
                "UPDATE counters SET value = value + 1 WHERE name = 'state' RETURNING value"
            ).fetchone()
            connection.execute(
                "INSERT INTO state (butler, key, value, updated_at, version) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (butler, key) DO UPDATE"
                " SET value = excluded.value, updated_at = excluded.updated_at, version = excluded.version",
                (self.butler, key, text, self.clock(), version),
            )
        return int(version)

    def _require_revision(self, connection: Any, key: str, wanted: int | None) -> None:
        if wanted is None:
            return
        row = connection.execute(
            "SELECT version FROM state WHERE butler = ? AND key = ?", (self.butler, key)
        ).fetchone()
        found = row["version"] if row else 0
        if found != wanted:
            raise AgentFarmError(
                f"{key} has revision {found}, not {wanted}",
                why="Somebody else has changed it since it was read; nothing was written.",
                hint=as_command("af", "butler", "state", "get", "--butler", self.butler, "--", key),
            )

    def items(self, prefix: str = "") -> dict[str, Any]:
        rows = self.database.query(
            "SELECT key, value FROM state WHERE butler = ? AND substr(key, 1, ?) = ? ORDER BY key",
            (self.butler, len(prefix), prefix),
        )
        return {row["key"]: json.loads(row["value"]) for row in rows}

    def delete(self, key: str) -> bool:
        """Returns whether there was something to delete."""
        return self.database.write("DELETE FROM state WHERE butler = ? AND key = ?", (self.butler, key)) == 1

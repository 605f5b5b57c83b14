"""Who may see the dashboard: one-time tickets that become logins, kept as hashes."""

from __future__ import annotations

import hmac
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from agent_farm.butler.server_files import load_token
from agent_farm.disk import make_directory, replace_file
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.own_files import read_own

TICKET_SECONDS = 120.0
LOGIN_SECONDS = 30 * 86400.0
_MOST = 100


@dataclass(slots=True)
class Logins:
    """Tickets live in memory and are good once; logins outlive the server, in `file`, as hashes."""

    file: Path
    token_file: Path
    clock: Callable[[], float] = time.time
    _tickets: dict[str, float] = field(default_factory=dict)
    _logins: dict[str, float] | None = None

    def issue_ticket(self) -> str:
        now = self.clock()
        self._tickets = {key: until for key, until in self._tickets.items() if until > now}
        ticket = os.urandom(32).hex()
        self._tickets[_hash(ticket)] = now + TICKET_SECONDS
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """A login for a ticket that was never used and is not too old; None otherwise."""
        until = self._tickets.pop(_hash(ticket), None)
        if until is None or until <= self.clock():
            return None
        login = os.urandom(32).hex()
        logins = self._current()
        logins[_hash(login)] = self.clock() + LOGIN_SECONDS
        self._store(logins)
        return login

    def is_good(self, login: str) -> bool:
        return self._current().get(_hash(login), 0.0) > self.clock()

    def end(self, login: str) -> None:
        logins = self._current()
        if logins.pop(_hash(login), None) is not None:
            self._store(logins)

    def is_architect(self, token: str) -> bool:
        """The bearer token of the farm's server, for programs that use the API."""
        try:
            known = load_token(self.token_file)
        except (DamagedFile, OSError):
            return False
        return bool(known) and hmac.compare_digest(known.encode(), token.encode())

    def _current(self) -> dict[str, float]:
        if self._logins is None:
            self._logins = _load(self.file)
        return self._logins

    def _store(self, logins: dict[str, float]) -> None:
        now = self.clock()
        newest = sorted(logins.items(), key=lambda item: item[1])[-_MOST:]
        self._logins = {key: until for key, until in newest if until > now}
        with suppress(AgentFarmError):  # a full disk: the login holds until the server ends
            make_directory(self.file.parent)
            replace_file(self.file, json.dumps({"version": 1, "logins": self._logins}) + "\n")


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _load(file: Path) -> dict[str, float]:
    """Nobody is logged in where the file cannot be read: logging in again costs one command."""
    try:
        document = json.loads(read_own(file, secret=True))
        return {str(key): float(until) for key, until in document["logins"].items()}
    except (DamagedFile, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}

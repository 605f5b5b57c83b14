"""Who may see the dashboard: one-time tickets become logins, which are stored as hashes."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import make_directory
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError

TICKET_SECONDS = 120.0
LOGIN_SECONDS = 30 * 86400.0
_MOST = 100
_ID_LENGTH = 16  # of a login's hash
_VERSION = 2  # logins of version 1 were cookies, which any server on this machine may have received


class Login(Struct, frozen=True):
    until: float
    port: int | None


class _Kept(Struct, frozen=True):
    logins: dict[str, Login] = {}


@dataclass(slots=True)
class Logins:
    """Tickets live in memory and work once; logins outlive the server: `file` has their hashes.

    A login only works at the port it was given for. If another program takes that port while the farm's
    server is not running, a page that is still open may show it the login; from then on the server has
    another port.
    """

    file: Path
    clock: Callable[[], float] = time.time
    _tickets: dict[str, float] = field(default_factory=dict)
    _logins: dict[str, Login] | None = None

    def issue_ticket(self) -> str:
        now = self.clock()
        self._tickets = {key: until for key, until in self._tickets.items() if until > now}
        ticket = os.urandom(32).hex()
        self._tickets[_hash(ticket)] = now + TICKET_SECONDS
        return ticket

    def redeem(self, ticket: str, port: int | None) -> str | None:
        """A login for a ticket that was never used and is not too old; otherwise None."""
        until = self._tickets.pop(_hash(ticket), None)
        if until is None or until <= self.clock():
            return None
        login = os.urandom(32).hex()
        logins = self._current()
        logins[_hash(login)] = Login(self.clock() + LOGIN_SECONDS, port)
        self._store(logins)
        return login

    def is_good(self, login: str, port: int | None) -> bool:
        known = self._current().get(_hash(login))
        return known is not None and known.until > self.clock() and known.port == port

    def prove(self, id: str, nonce: str, port: int | None) -> str | None:
        """Proof that this server gave out the login with this id: pages ask before they show theirs."""
        for key, login in self._current().items():
            if key[:_ID_LENGTH] == id and login.until > self.clock() and login.port == port:
                return hmac.new(key.encode(), nonce.encode(), sha256).hexdigest()
        return None

    def end(self, login: str) -> None:
        logins = self._current()
        if logins.pop(_hash(login), None) is not None:
            self._store(logins)

    def _current(self) -> dict[str, Login]:
        if self._logins is None:
            # if the file cannot be read, nobody is logged in: logging in again takes one command
            kept = load_if_whole(self.file, _Kept, version=_VERSION, secret=True) or _Kept()
            self._logins = kept.logins
        return self._logins

    def _store(self, logins: dict[str, Login]) -> None:
        now = self.clock()
        newest = sorted(logins.items(), key=lambda item: item[1].until)[-_MOST:]
        self._logins = {key: login for key, login in newest if login.until > now}
        with suppress(AgentFarmError):  # on a full disk, the login lasts until the server ends
            make_directory(self.file.parent)
            store(self.file, _Kept(self._logins), version=_VERSION)


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

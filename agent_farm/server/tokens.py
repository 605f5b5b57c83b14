"""Bearer tokens: who a caller is. Only hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agent_farm.disk import make_directory
from agent_farm.documents import load_if_whole, store
from agent_farm.paths import is_builder_id
from agent_farm.server.variables import Shell

Kind = Literal["architect", "session", "builder"]


@dataclass(frozen=True, slots=True)
class Caller:
    """`login` is what the architect's page shows, where the token of a program would be.

    `shell` is the one from which the architect asks. `butler` is the one whose session it is, None for the
    farm's own.
    """

    kind: Kind
    id: str
    shell: Shell = field(default=Shell(), repr=False, compare=False)
    login: str | None = field(default=None, repr=False)
    butler: str | None = None


class _Kept(Struct, frozen=True):
    """What a builder's run directory has of its token."""

    sha256: str


def new_token() -> str:
    return os.urandom(32).hex()


def hash_token(token: str) -> str:
    """A plain hash is enough for 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()


def builder_token_file(runs: Path, builder_id: str) -> Path:
    return runs / builder_id / "token.json"


def mint_builder_token(runs: Path, builder_id: str) -> str:
    """A new token for the builder; the one before stops working. It ends with the run directory."""
    token = new_token()
    file = builder_token_file(runs, builder_id)
    make_directory(file.parent)
    store(file, _Kept(hash_token(token)))
    return token


@dataclass(slots=True)
class Tokens:
    """The tokens one server accepts; sessions' hashes live as long as the sessions do."""

    runs: Path
    architect: str | None = None
    _sessions: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def mint_for_session(self, session_id: str, butler: str | None = None) -> str:
        token = new_token()
        self._sessions[session_id] = hash_token(token), butler
        return token

    def revoke_session(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def caller(self, token: str, runtime_session_id: str | None) -> Caller | None:
        """Who carries `token`; a session or builder has to name itself, and rightly."""
        given = hash_token(token)
        if _same(given, self.architect):
            return Caller("architect", "architect")
        if not runtime_session_id:
            return None
        known, butler = self._sessions.get(runtime_session_id, (None, None))
        if _same(given, known):
            return Caller("session", runtime_session_id, butler=butler)
        if _same(given, self._builder_hash(runtime_session_id)):
            return Caller("builder", runtime_session_id)
        return None

    def _builder_hash(self, builder_id: str) -> str | None:
        if not is_builder_id(builder_id):
            return None
        kept = load_if_whole(builder_token_file(self.runs, builder_id), _Kept, secret=True)
        return kept.sha256 if kept else None


def _same(given: str, known: str | None) -> bool:
    return known is not None and hmac.compare_digest(given.encode(), known.encode())

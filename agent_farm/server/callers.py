"""Identifies a caller of the server by its token."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent_farm.server.tokens import builder_hash, hash_token, new_token
from agent_farm.server.variables import Shell

Kind = Literal["architect", "session", "builder"]


@dataclass(frozen=True, slots=True)
class Caller:
    """`login` is what the architect's page sends instead of a program's token.

    `shell` is where the architect asks from. `butler` is the butler to which a session belongs, None for the
    farm's own.
    """

    kind: Kind
    id: str
    shell: Shell = field(default=Shell(), repr=False, compare=False)
    login: str | None = field(default=None, repr=False)
    butler: str | None = None


@dataclass(slots=True)
class Tokens:
    """The tokens that this server accepts; hashes of sessions' tokens live as long as the sessions."""

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
        """Who has `token`; a session or builder must also name itself, and rightly."""
        given = hash_token(token)
        if _same(given, self.architect):
            return Caller("architect", "architect")
        if not runtime_session_id:
            return None
        known, butler = self._sessions.get(runtime_session_id, (None, None))
        if _same(given, known):
            return Caller("session", runtime_session_id, butler=butler)
        if _same(given, builder_hash(self.runs, runtime_session_id)):
            return Caller("builder", runtime_session_id)
        return None


def _same(given: str, known: str | None) -> bool:
    return known is not None and hmac.compare_digest(given.encode(), known.encode())

"""Credentials, encrypted at rest; a stored one takes precedence over the environment."""

from __future__ import annotations

import os
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import AgentFarmError, DamagedFile, NotFound, UsageError, meant
from agent_farm.own_files import read_own
from agent_farm.paths import user_state_directory
from agent_farm.sessions.database import Database

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def default_key_file() -> Path:
    """Outside the repository, so that a copied butler.db gives nothing away."""
    return user_state_directory() / "credentials.key"


@dataclass(frozen=True, slots=True)
class CredentialStore:
    database: Database
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    key_file: Path = field(default_factory=default_key_file)
    clock: Callable[[], float] = time.time

    async def resolve(self, name: str) -> str | None:
        """The stored value, else the one in the environment, else None."""
        return await self.database.run(self.lookup, name)

    def lookup(self, name: str) -> str | None:
        rows = self.database.query("SELECT value FROM credentials WHERE name = ?", (name,))
        if rows:
            return self._decrypt(name, rows[0]["value"])
        return self.environ.get(name)

    def lookup_all(self, names: Iterable[str]) -> dict[str, str]:
        found = {name: self.lookup(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def set(self, name: str, value: str) -> None:
        _require_name(name)
        if not value or "\0" in value:
            raise UsageError(f"The value of {name} is empty or contains NUL")
        sealed = _cipher(self._key(create=True)).encrypt(value.encode())
        self.database.write(
            "INSERT INTO credentials VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
            " SET value = excluded.value, updated_at = excluded.updated_at",
            (name, sealed, self.clock()),
        )

    def names(self) -> dict[str, float]:
        """name -> when it was set; values are never listed."""
        rows = self.database.query("SELECT name, updated_at FROM credentials ORDER BY name")
        return {row["name"]: row["updated_at"] for row in rows}

    def unset(self, name: str) -> None:
        if self.database.write("DELETE FROM credentials WHERE name = ?", (name,)):
            return
        why = meant(name, self.names())
        raise NotFound(f"No credential {name} is stored", why=why, hint="af credentials list")

    def _decrypt(self, name: str, sealed: bytes) -> str:
        from cryptography.fernet import InvalidToken

        try:
            return _cipher(self._key(create=False)).decrypt(sealed).decode()
        except InvalidToken as error:
            raise DamagedFile(
                f"The credential {name} was sealed with another key than {self.key_file}",
                hint=f"af credentials set {name}",
            ) from error

    def _key(self, *, create: bool) -> bytes:
        try:
            return _valid_key(self.key_file, read_own(self.key_file, secret=True))
        except FileNotFoundError:
            if not create:
                raise DamagedFile(
                    f"{self.key_file} is gone, so stored credentials cannot be read",
                    hint="af credentials set NAME",
                ) from None
            return self._new_key()

    def _new_key(self) -> bytes:
        make_directory(self.key_file.parent)
        lock = self.key_file.with_suffix(".lock")
        with file_lock(lock):
            if not self.key_file.exists():  # another process may have been first
                replace_file(self.key_file, urlsafe_b64encode(os.urandom(32)))  # the form that Fernet wants
            lock.unlink()
        return self._key(create=False)


def unreadable_credentials(file: Path) -> dict[str, AgentFarmError]:
    """Why, by name; of several that cannot be read for the same reason, only the first."""
    with closing(Database(file)) as database:
        store = CredentialStore(database, environ={})
        found: dict[str, AgentFarmError] = {}
        for name in store.names():
            try:
                store.lookup(name)
            except AgentFarmError as error:
                if error.sentence not in (one.sentence for one in found.values()):
                    found[name] = error
    return found


def _valid_key(path: Path, text: bytes) -> bytes:
    try:
        _cipher(text.strip())
    except ValueError as error:
        raise DamagedFile(f"{path} contains no key", hint=f"mv {path} {path}.damaged") from error
    return text.strip()


def _cipher(key: bytes) -> Fernet:
    from cryptography.fernet import Fernet  # takes 40 ms, and most commands do not need it

    return Fernet(key)


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not the name of an environment variable")

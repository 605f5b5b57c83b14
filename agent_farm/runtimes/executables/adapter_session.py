"""Sessions on disk: `.agent-farm/sessions/<id>/`, found from any directory of the repository."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_farm.disk import file_lock, is_locked, make_directory
from agent_farm.documents import load, store
from agent_farm.errors import DamagedFile
from agent_farm.paths import STATE_NAME
from agent_farm.runtimes.worktree_facts import main_checkout, top_of


class UnknownSession(Exception):
    pass


class Assignment(msgspec.Struct, frozen=True):
    """What was asked for, the commit it began at, which files differed from that already, and what came of
    it.

    `conversation` is None until the CLI has reported the id that it chose.
    """

    runtime: str
    brief: Path
    state: Path
    cwd: Path
    base: str | None = None
    before: tuple[str, ...] = ()
    conversation: str | None = None
    status: Literal["pending", "active", "completed", "failed"] = "pending"


@dataclass(frozen=True)
class AdapterSession:
    """`alive.lock` tells whether its turn is still running."""

    directory: Path
    told: Assignment

    @property
    def id(self) -> str:
        return self.directory.name

    @property
    def prompt_file(self) -> Path:
        return self.directory / "prompt.txt"

    @property
    def log(self) -> Path:
        return self.directory / "adapter.log"

    @property
    def alive_lock(self) -> Path:
        return self.directory / "alive.lock"

    def is_alive(self) -> bool:
        """Its turn holds the lock as long as it lives, however it ends."""
        return is_locked(self.alive_lock)

    def status(self) -> str:
        if self.told.status in ("completed", "failed") or self.is_alive():
            return self.told.status
        again = load_session(self.directory).told.status  # it may have ended in between
        return again if again in ("completed", "failed") else "failed"

    def changed(self, **facts: Any) -> AdapterSession:
        session = AdapterSession(self.directory, msgspec.structs.replace(self.told, **facts))
        session.save()
        return session

    def save(self) -> None:
        store(self.directory / "session.json", self.told)


@dataclass(frozen=True)
class Sessions:
    root: Path
    directory: Path

    @classmethod
    def of(cls, cwd: Path) -> Sessions:
        top = top_of(cwd)
        root = main_checkout(top) or top  # a linked worktree shares its repository's sessions
        return cls(root, root / STATE_NAME / "sessions")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while a session is looked for and begun; creates the directory."""
        make_directory(self.directory)
        ignore = self.directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        with file_lock(self.directory / ".lock"):
            yield

    def living(self, runtime: str, brief: Path, state: Path) -> AdapterSession | None:
        """The session with this brief and state whose turn is running."""
        for directory in self.directory.glob(f"{runtime}-{_key(brief, state)}-*"):
            with suppress(UnknownSession):  # whoever began that session was killed
                session = self.load(directory.name, runtime)
                if session.is_alive():
                    return session
        return None

    def create(self, told: Assignment) -> AdapterSession:
        key = _key(told.brief, told.state)
        directory = self.directory / f"{told.runtime}-{key}-{os.urandom(3).hex()}"
        directory.mkdir(mode=0o700)
        session = AdapterSession(directory, told)
        session.save()
        return session

    def load(self, identity: str, runtime: str) -> AdapterSession:
        """UnknownSession also if the session belongs to another runtime."""
        session = load_session(self.directory / identity)
        if "/" in identity or session.told.runtime != runtime:
            raise UnknownSession(identity)
        return session


def load_session(directory: Path) -> AdapterSession:
    try:
        return AdapterSession(directory, load(directory / "session.json", Assignment))
    except (OSError, ValueError, DamagedFile) as error:
        raise UnknownSession(directory.name) from error


def _key(brief: Path, state: Path) -> str:
    content = hashlib.sha256(brief.read_bytes()).hexdigest()
    text = "\0".join((str(brief.resolve()), content, str(state.resolve())))
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:10]

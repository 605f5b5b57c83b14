"""Sessions on disk: `.agent-farm/sessions/<id>/`, found from any directory of the repository."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agent_farm.paths import STATE_NAME
from agent_farm.runtimes.executables.session_adapter.files import replace_json
from agent_farm.runtimes.worktree_files import main_checkout, top_of


class UnknownSession(Exception):
    pass


@dataclass(frozen=True)
class Session:
    """What was asked for; `outcome.json` beside it is what came of it, the lock says whether it lives."""

    directory: Path
    id: str
    runtime: str
    brief: Path
    state: Path
    cwd: Path
    conversation: str

    @property
    def prompt_file(self) -> Path:
        return self.directory / "prompt.txt"

    @property
    def log(self) -> Path:
        return self.directory / "adapter.log"

    @property
    def outcome(self) -> Path:
        return self.directory / "outcome.json"

    @property
    def artifacts_file(self) -> Path:
        """What all its turns have made: the agent may have left it out of the state."""
        return self.directory / "artifacts.json"

    @property
    def alive_lock(self) -> Path:
        return self.directory / "alive.lock"

    def is_alive(self) -> bool:
        """Its supervisor holds the lock for as long as it lives, however it dies.

        Asked for in a way that any number can ask at once without taking each other for the supervisor.
        """
        descriptor = os.open(self.alive_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def status(self) -> str:
        told = str(_load(self.outcome).get("status", "pending"))
        if told in ("pending", "active") and not self.is_alive():
            again = str(_load(self.outcome).get("status", "pending"))  # it may have ended in between
            return again if again in ("completed", "failed") else "failed"
        return told

    def with_state(self, state: Path) -> Session:
        changed = replace(self, state=state)
        changed.save()
        return changed

    def with_conversation(self, conversation: str) -> Session:
        changed = replace(self, conversation=conversation)
        changed.save()
        return changed

    def save(self) -> None:
        replace_json(self.directory / "session.json", {"version": 1, **_plain(self)})


@dataclass(frozen=True)
class Sessions:
    root: Path
    directory: Path

    @classmethod
    def of(cls, cwd: Path) -> Sessions:
        top = top_of(cwd)
        root = main_checkout(top) or top  # a linked worktree shares the sessions of its repository
        return cls(root, root / STATE_NAME / "sessions")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while a session is looked for and begun; makes the directory where there is none."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = self.directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        descriptor = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def living(self, runtime: str, brief: Path, state: Path) -> Session | None:
        """The session of this brief and state that is not at its end."""
        for directory in self.directory.glob(f"{runtime}-{_key(brief, state)}-*"):
            with suppress(UnknownSession):  # whoever began that one died over it
                session = self.load(directory.name, runtime)
                if session.is_alive():
                    return session
        return None

    def create(self, runtime: str, brief: Path, state: Path, cwd: Path) -> Session:
        identity = f"{runtime}-{_key(brief, state)}-{os.urandom(3).hex()}"
        directory = self.directory / identity
        directory.mkdir(mode=0o700)
        session = Session(directory, identity, runtime, brief, state, cwd, str(uuid.uuid4()))
        session.save()
        return session

    def load(self, identity: str, runtime: str | None = None) -> Session:
        """UnknownSession also for a session of another runtime than the one that asks."""
        directory = self.directory / identity
        raw = _load(directory / "session.json") if "/" not in identity else {}
        if raw.get("id") != identity or raw.get("runtime") != (runtime or raw.get("runtime")):
            raise UnknownSession(identity)
        try:
            brief, state, cwd = (Path(raw[name]) for name in ("brief", "state", "cwd"))
            return Session(directory, identity, raw["runtime"], brief, state, cwd, raw["conversation"])
        except (KeyError, TypeError) as error:
            raise UnknownSession(identity) from error


def _key(brief: Path, state: Path) -> str:
    content = hashlib.sha256(brief.read_bytes()).hexdigest()
    text = "\0".join((str(brief.resolve()), content, str(state.resolve())))
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:10]


def _load(path: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _plain(session: Session) -> dict[str, str]:
    return {name: str(value) for name, value in asdict(session).items() if name != "directory"}

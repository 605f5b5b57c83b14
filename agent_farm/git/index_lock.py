"""Takes git's own lock on an index, while `af` changes the files of a checkout."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_farm.disk import cannot_write, read_plain
from agent_farm.errors import LockTaken
from agent_farm.git.checkout import Checkout
from agent_farm.git.left_locks import gits_in
from agent_farm.launch import as_command

_POLL_SECONDS = 0.02
_SECONDS = 15.0
_MARK_LENGTH = 100
_SWITCHING = {"switch", "checkout", "rebase"}
_SWITCH_SECONDS = 3.0


def index_lock(checkout: Checkout) -> Path:
    """The file that every git creates before it changes the index, and removes afterwards."""
    return checkout.git_dir / "index.lock"


@contextmanager
def locked_index(checkout: Checkout, mark: str) -> Iterator[None]:
    """Keep other gits from changing the index; a lock that holds `mark` was left by the same merge, and is
    taken.

    `git switch` releases the lock before it changes HEAD, so a switch still running is waited for.
    """
    path = index_lock(checkout)
    deadline = time.monotonic() + _SECONDS
    while not _made(path, mark) and not is_marked(path, mark):
        if time.monotonic() >= deadline:
            raise LockTaken(
                f"Another git command is changing {checkout.path}",
                why=f"It holds {path}. If none runs, a git that was killed left it: remove that file.",
                hint=as_command("git", "-C", checkout.path, "status"),
            )
        time.sleep(_POLL_SECONDS)
    try:
        _wait_for_switches(checkout)
        yield
    finally:
        if is_marked(path, mark):
            with suppress(OSError):
                path.unlink()


def _wait_for_switches(checkout: Checkout) -> None:
    """A switch that takes longer has changed HEAD by now, and runs a hook or asks something."""
    deadline = time.monotonic() + _SWITCH_SECONDS
    begun = {one.pid for one in gits_in(checkout) if _SWITCHING & set(one.words)}
    while begun and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        begun &= {one.pid for one in gits_in(checkout)}


def is_marked(lock: Path, mark: str) -> bool:
    try:
        return read_plain(lock, limit=_MARK_LENGTH) == mark.encode()
    except OSError:
        return False


def _made(path: Path, mark: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            file.write(mark.encode())
            file.flush()
            os.fsync(descriptor)
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise
    return True

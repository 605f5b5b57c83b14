"""Files that several processes share: whole or not at all, one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_farm.descendants import is_there
from agent_farm.errors import AgentFarmError, LockTaken

_POLL_SECONDS = 0.01


def replace_file(path: Path, data: str | bytes, *, mode: int = 0o600, lasting: bool = True) -> None:
    """Readers see the old content or the new one, even after a power cut.

    Not `lasting`: after a power cut it may be empty, as is right for what is written anew at each start.
    """
    content = data.encode() if isinstance(data, str) else data
    # a name that no repository can have brought along and no other thread uses
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # the umask may have taken bits away
            file.write(content)
            file.flush()
            if lasting:
                os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException as error:  # Ctrl-C too
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise


def stale_temporaries(directory: Path) -> list[Path]:
    """Files of `replace_file` in this directory whose writers were killed before the rename."""
    found = []
    for path in directory.glob(".*.tmp"):
        pid = path.suffixes[-2:][0].lstrip(".") if len(path.suffixes) > 1 else ""
        if pid.isdecimal() and not is_there(int(pid)):
            found.append(path)
    return found


def read_plain(path: str | Path, *, limit: int) -> bytes:
    """The bytes of a file that somebody else may have put there.

    OSError if it is not a regular file or is larger than `limit`. Links are not followed, and a FIFO or a
    device does not block.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def make_directory(path: Path, *, mode: int = 0o700, alone: bool = False) -> None:
    """Create `path` and its missing parents, all in that mode; what exists stays as it is.

    `alone`: create no parents, so that a server that is just starting makes no farm where one was moved away.
    """
    try:
        for missing in reversed([path] if alone else [path, *path.parents]):
            if not missing.exists():
                missing.mkdir(mode=mode, exist_ok=True)
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def file_lock(
    path: Path, *, wait: float | None = None, inherit: bool = False, busy: LockTaken | None = None
) -> Iterator[int]:
    """Hold `path` as a lock. Its holder alone may remove the file.

    `wait` bounds the wait in seconds (None: for ever, 0: not at all); then LockTaken is raised, or `busy`.
    With `inherit`, children that are passed the descriptor hold the lock too, for as long as they live.
    """
    while True:
        descriptor = _open_lock(path)
        try:
            _acquire(descriptor, wait, busy or LockTaken(f"{path} is held by another process"))
            if not _is_the_file(descriptor, path):
                continue  # its last holder removed it, so that others lock another file
            os.set_inheritable(descriptor, inherit)
            yield descriptor
            return
        finally:
            os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a live process holds the lock; a lock file alone says nothing.

    A shared lock: any number of processes can ask at once without taking each other for the holder.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def _is_the_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        make_directory(path.parent)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.EROFS:  # a lock file that cannot be written still keeps others out
            with suppress(OSError):
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        raise cannot_write(path, error) from error


def _acquire(descriptor: int, wait: float | None, busy: LockTaken) -> None:
    if wait is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise busy from None
            time.sleep(_POLL_SECONDS)


def cannot_write(path: Path, error: OSError) -> AgentFarmError:
    there = next(place for place in path.parents if place == place.parent or os.path.exists(place))
    words = {errno.ENOSPC: "df -h", errno.EDQUOT: "df -h", errno.EROFS: "df", errno.EACCES: "ls -ld"}
    command = words.get(error.errno or 0)
    return AgentFarmError(
        f"Cannot write {path}",
        why=os.strerror(error.errno or 0),
        hint=f"{command} {shlex.quote(str(there))}" if command else None,
    )

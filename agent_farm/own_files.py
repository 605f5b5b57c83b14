"""Whether a file or directory of ours can be trusted: one answer for records, tokens, logins and locks.

What `af` writes is a regular file or a directory of the user who runs it, and nobody else may write it.
Anything else was put there by somebody else: a cloned repository, an archive, another user of the machine.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from pathlib import Path
from typing import BinaryIO

from agent_farm.errors import DamagedFile, ForeignFile
from agent_farm.launch import as_command

MOST_BYTES = 64 * 1024 * 1024


def read_own(path: Path, *, secret: bool = False) -> bytes:
    """The bytes of a file that only this user can have written (and read, if `secret`).

    FileNotFoundError when there is none. A link, a FIFO, a device or a huge file is refused, not read.
    """
    with open_own(path, secret=secret) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise DamagedFile(
                f"{path} has {size} bytes",
                why=f"af reads up to {MOST_BYTES}.",
                hint=as_command("ls", "-l", path),
            )
        return file.read(MOST_BYTES)


def open_own(path: Path, *, secret: bool = False) -> BinaryIO:
    """Like `read_own`, for a file that is read in parts."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _link(path) from error
        raise
    try:
        _require_own_file(path, os.fstat(descriptor), secret=secret)
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def require_own_file(path: Path, *, secret: bool = False) -> None:
    """Like `read_own`, without opening the file.

    Closing any descriptor of a file releases all locks that this process holds on it: SQLite's too.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise _link(path)
    _require_own_file(path, found, secret=secret)


def require_own_directory(path: Path) -> None:
    """ForeignFile unless `path` is a directory of this user that others cannot write, or does not exist."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise ForeignFile(
            f"{path} is a symbolic link",
            why=f"It leads to {os.readlink(path)}. af keeps its state in a directory of its own.",
            hint=as_command("rm", path),
        )
    if not stat.S_ISDIR(found.st_mode):
        raise ForeignFile(
            f"{path} is not a directory",
            why="af keeps its state there.",
            hint=as_command("mv", path, f"{path}.old"),
        )
    _require_own(path, found)


def _link(path: Path) -> ForeignFile:
    return ForeignFile(
        f"{path} is a symbolic link",
        why="af makes none.",
        hint=as_command("ls", "-l", path),
    )


def _require_own_file(path: Path, found: os.stat_result, *, secret: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise DamagedFile(
            f"{path} is not a regular file", why="It is not read.", hint=as_command("ls", "-ld", path)
        )
    _require_own(path, found, secret=secret)


def _require_own(path: Path, found: os.stat_result, *, secret: bool = False) -> None:
    if found.st_uid != os.geteuid():
        raise ForeignFile(
            f"{path} belongs to {_user(found.st_uid)}",
            why=f"You are {_user(os.geteuid())}. af only uses files written by the user who runs it.",
            hint=as_command("ls", "-ld", path),
        )
    if secret and found.st_mode & 0o077:
        raise ForeignFile(
            f"{path} can be read by other users",
            why="It holds a secret that af writes for its user only; something else wrote it or changed"
            f" its mode. If you trust its contents: {as_command('chmod', '600', path)}",
            hint=as_command("ls", "-l", path),
        )
    if _others_write(found):
        raise ForeignFile(
            f"{path} can be written by other users",
            why="Its contents may be theirs.",
            hint=as_command("chmod", "go-w", path),
        )


def _others_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private_group(found.st_gid)


def _is_private_group(gid: int) -> bool:
    """Distributions with umask 002 give each user a group of the same name, with nobody else in it."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"

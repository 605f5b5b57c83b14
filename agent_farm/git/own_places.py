"""Refuses a repository that tracks files in `.agent-farm` or `.builders`, which are af's own.

A commit can bring such files at any time (`git pull` and `git checkout` overwrite ignored files without
warning), so the index is checked every time. It is parsed here, which takes microseconds; git takes
milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_farm.errors import ForeignFile
from agent_farm.git.git_process import paths_of, run_git
from agent_farm.launch import as_command
from agent_farm.own_files import require_own_directory
from agent_farm.paths import STATE_NAME, WORKTREES_NAME

_OURS = (os.fsencode(STATE_NAME), os.fsencode(WORKTREES_NAME))
_LAST = max(_OURS) + b"0"  # "0" is the character after "/": this sorts after every path in both directories
_HEADER, _FIXED, _HASH = 12, 40, 20  # in bytes: the file's header, an entry before its hash, the hash
_LONG_FLAG = 0x40
_ENOUGH = 1 << 18  # few names sort before ours


def require_own_places(root: Path, git_dir: Path) -> None:
    """ForeignFile if one of them is tracked by git, is or contains a link, or is writable for others."""
    places = [root / os.fsdecode(name) for name in _OURS]
    present = [place for place in places if os.path.lexists(place)]
    if not present:
        return
    for place in present:
        require_own_directory(place)
    _require_no_links(root / STATE_NAME)
    for path in _tracked(root, git_dir):
        name = os.fsdecode(path.split(b"/")[0])
        for place in present:
            if _is_same(root / name, place):
                _refuse(root, place, os.fsdecode(path))


def _require_no_links(state: Path) -> None:
    """Refuse links directly inside: af deletes files in its directories, so none may lead elsewhere."""
    with suppress(FileNotFoundError), os.scandir(state) as entries:
        for entry in entries:
            if entry.is_symlink():
                require_own_directory(state / entry.name)


def _refuse(root: Path, place: Path, path: str) -> None:
    raise ForeignFile(
        f"{place} is tracked by git",
        why=f"The repository contains {path}. Only af may write there: a repository could plant builders,"
        " logins and commands. If you added it by mistake,"
        f" {as_command('git', 'rm', '-r', '--cached', place.name)} keeps the files.",
        hint=as_command("git", "-C", root, "rm", "-r", "--", place.name),
    )


def _is_same(one: Path, other: Path) -> bool:
    """Whether both are one file; they may be on a file system that ignores case."""
    if one == other:
        return True
    with suppress(OSError):
        return os.path.samestat(os.lstat(one), os.lstat(other))
    return False


def _tracked(root: Path, git_dir: Path) -> list[bytes]:
    """Paths in the main checkout's index under our names, in upper or lower case."""
    try:
        with (git_dir / "index").open("rb") as file:
            data = file.read(_ENOUGH)
            version = int.from_bytes(data[4:8], "big")
            if data[:4] == b"DIRC" and version in (2, 3, 4) and not _is_split(git_dir):
                try:
                    return _ours_among(data, version)
                except IndexError:
                    with suppress(IndexError):  # the index is damaged: git will say how
                        return _ours_among(data + file.read(), version)
    except FileNotFoundError:
        return []
    names = (f":(icase,top){os.fsdecode(name)}" for name in _OURS)
    return [os.fsencode(path) for path in paths_of(run_git(root, "ls-files", "-z", "--", *names))]


def _ours_among(data: bytes, version: int) -> list[bytes]:
    return [path for path in _paths(data, version) if path.split(b"/")[0].lower() in _OURS]


def _is_split(git_dir: Path) -> bool:
    return any(name.startswith("sharedindex.") for name in os.listdir(git_dir))


def _paths(data: bytes, version: int) -> Iterator[bytes]:
    """The entries' paths in order, up to where ours would be. See gitformat-index(5)."""
    offset, path = _HEADER, b""
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = offset
        offset += _FIXED + _HASH
        offset += 4 if data[offset] & _LONG_FLAG else 2
        kept = 0
        if version == 4:
            strip, offset = _number(data, offset)
            kept = len(path) - strip
        end = data.find(b"\0", offset)
        if end < 0:
            raise IndexError
        path = path[:kept] + data[offset:end]
        offset = end + 1 if version == 4 else start + ((end - start) // 8 + 1) * 8
        if path > _LAST:
            return
        yield path


def _number(data: bytes, offset: int) -> tuple[int, int]:
    """Read git's variable-length number; returns it and where it ends."""
    byte = data[offset]
    value = byte & 0x7F
    while byte & 0x80:
        offset += 1
        byte = data[offset]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, offset + 1

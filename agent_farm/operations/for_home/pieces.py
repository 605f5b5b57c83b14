"""What a machine that git cannot reach does with commits: packs come and go in pieces, each in a call."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agent_farm.builders.ref_names import ObjectName, is_branch_name
from agent_farm.disk import make_directory
from agent_farm.errors import AgentFarmError, NotFound, UsageError
from agent_farm.git.git_process import run_git
from agent_farm.git.packs import known_here, make_pack, set_refs, take_pack, tips
from agent_farm.operations.operation import Answer

PIECE_BYTES = 8 * 1024 * 1024
_STALE_SECONDS = 86_400.0
_REF = re.compile(r"refs/(agent-farm|remotes)/home/[^\x00-\x20~^:?*\[\\]+")
_Name = Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]


class Take(Struct, frozen=True):
    """A piece of a pack, and with the last one where its commits are to be found."""

    name: _Name
    offset: int
    data: bytes
    refs: dict[str, ObjectName] = {}


class Give(Struct, frozen=True):
    branch: str
    known: tuple[ObjectName, ...]


class Read(Struct, frozen=True):
    name: _Name
    offset: int


class Tips(Answer):
    commits: tuple[ObjectName, ...] = ()


class Given(Answer):
    """The pack that makes `commit` whole; without a name nothing is missing."""

    commit: ObjectName
    name: str = ""
    size: int = 0


class Piece(Answer):
    data: bytes = b""


def carry(place: Path, verb: str, request: dict[str, Any]) -> Answer:
    if verb == "pack_tips":
        return Tips(tips(place))
    if verb == "pack_take":
        return _take(place, msgspec.convert(request, Take))
    if verb == "pack_give":
        return _give(place, msgspec.convert(request, Give))
    return _read(place, msgspec.convert(request, Read))


PACK_VERBS = ("pack_tips", "pack_take", "pack_give", "pack_read")


def _file(place: Path, name: str) -> Path:
    directory = place / ".git/agent-farm-packs"
    make_directory(directory)
    for other in directory.iterdir():
        with suppress(FileNotFoundError):
            if time.time() - other.lstat().st_mtime > _STALE_SECONDS:
                other.unlink()  # of one whose other end has gone
    return directory / name


def _take(place: Path, piece: Take) -> Tips:
    if wrong := [ref for ref in piece.refs if not _REF.fullmatch(ref) or ".." in ref]:
        raise UsageError(f"{wrong[0]!r:.80} is no ref of home")
    file = _file(place, piece.name)
    with open(file, "ab" if piece.offset else "wb") as written:
        if written.tell() != piece.offset:
            raise AgentFarmError("A piece of a pack is missing", why="It is sent again from its beginning.")
        written.write(piece.data)
    if piece.refs:
        try:
            if file.stat().st_size:
                with open(file, "rb") as pack:
                    take_pack(place, pack)
            set_refs(place, piece.refs)
        finally:
            file.unlink()
    return Tips()


def _give(place: Path, asked: Give) -> Given:
    if not is_branch_name(asked.branch):
        raise UsageError(f"{asked.branch!r:.80} is no branch")
    words = ("rev-parse", "--verify", "--quiet", f"refs/heads/{asked.branch}^{{commit}}")
    commit = run_git(place, *words, ok=(0, 1)).strip()
    if not commit:
        raise NotFound(f"There is no branch {asked.branch}")
    known = known_here(place, asked.known)
    if commit in known:
        return Given(commit)
    name = os.urandom(8).hex()
    with open(_file(place, name), "w+b") as pack:
        return Given(commit, name, make_pack(place, [commit], known, pack))


def _read(place: Path, asked: Read) -> Piece:
    file = _file(place, asked.name)
    with open(file, "rb") as pack:
        pack.seek(asked.offset)
        data = pack.read(PIECE_BYTES)
        is_last = not pack.read(1)
    if is_last:
        file.unlink()
    return Piece(data)

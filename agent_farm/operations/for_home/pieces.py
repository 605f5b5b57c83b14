"""Takes and gives packs of commits in pieces, one call each, for machines that git cannot reach."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agent_farm.builders.ref_names import ObjectName
from agent_farm.disk import make_directory
from agent_farm.errors import AgentFarmError, NotFound, UsageError
from agent_farm.git.packs import commits_at, known_here, make_pack, set_refs, take_pack, tips
from agent_farm.operations.operation import Answer

PIECE_BYTES = 8 * 1024 * 1024
_STALE_SECONDS = 86_400.0
_NAME_OF_REF = r"[^\x00-\x20~^:?*\[\\]+"
_OF_HOME = re.compile(rf"refs/(agent-farm|remotes)/home/{_NAME_OF_REF}")
_OF_BUILDERS = re.compile(rf"refs/(heads|agent-farm/checkpoint)/{_NAME_OF_REF}")
_Name = Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]


class Take(Struct, frozen=True):
    """A piece of a pack; the last one says which refs its commits get."""

    name: _Name
    offset: int
    data: bytes
    refs: dict[str, ObjectName] = {}


class Give(Struct, frozen=True):
    """Asks for the commits of these refs, for a caller that has `known` and takes at most `most_bytes`."""

    refs: tuple[str, ...]
    known: tuple[ObjectName, ...]
    most_bytes: int


class Read(Struct, frozen=True):
    name: _Name
    offset: int


class Tips(Answer):
    commits: tuple[ObjectName, ...] = ()


class Given(Answer):
    """The commits of those refs, and the pack that the caller needs for them: it begins with `data`, and the
    rest is read under `name`. If the pack is too large, nothing of it is given."""

    commits: dict[str, ObjectName]
    size: int = 0
    data: bytes = b""
    name: str = ""


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
                other.unlink()  # left by a caller that is gone
    return directory / name


def _take(place: Path, piece: Take) -> Tips:
    _require_refs(_OF_HOME, piece.refs)
    file = _file(place, piece.name)
    with open(file, "ab" if piece.offset else "wb") as written:
        if written.tell() != piece.offset:
            raise AgentFarmError("A piece of the pack is missing", why="It is sent again from its beginning.")
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


def _require_refs(kind: re.Pattern[str], refs: Iterable[str]) -> None:
    for ref in refs:
        if not kind.fullmatch(ref) or ".." in ref:
            raise UsageError(f"{ref!r:.80} cannot be transferred this way")


def _give(place: Path, asked: Give) -> Given:
    _require_refs(_OF_BUILDERS, asked.refs)
    commits = commits_at(place, asked.refs)
    if missing := [ref for ref in asked.refs if ref not in commits]:
        raise NotFound(f"There is no {missing[0]}")
    known = known_here(place, asked.known)
    wanted = {*commits.values()} - {*known}
    if not wanted:
        return Given(commits)
    name = os.urandom(8).hex()
    file = _file(place, name)
    with open(file, "w+b") as pack:
        size = make_pack(place, sorted(wanted), known, pack)
        data = pack.read(PIECE_BYTES) if size <= asked.most_bytes else b""
    if data and len(data) < size:
        return Given(commits, size, data, name)
    file.unlink()
    return Given(commits, size, data)


def _read(place: Path, asked: Read) -> Piece:
    file = _file(place, asked.name)
    with open(file, "rb") as pack:
        pack.seek(asked.offset)
        data = pack.read(PIECE_BYTES)
        is_last = not pack.read(1)
    if is_last:
        file.unlink()
    return Piece(data)

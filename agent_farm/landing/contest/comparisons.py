"""Who was compared with whom, so that keeping one says who goes; the newest of each builder counts."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_farm.disk import file_lock, make_directory, replace_document
from agent_farm.errors import DamagedFile, NewerFile, NotFound
from agent_farm.launch import as_command
from agent_farm.own_files import read_own

_VERSION = 1
_MOST = 100


class Comparison(Struct, frozen=True):
    """`tips` are the commits that were compared, by builder; the ids of those that were not proven, too."""

    at: float
    tips: dict[str, str]


class _File(Struct, frozen=True):
    comparisons: tuple[Comparison, ...] = ()
    version: int = _VERSION


def remember(file: Path, tips: Mapping[str, str]) -> None:
    make_directory(file.parent)
    with file_lock(file.with_suffix(".lock")):
        before = _load(file).comparisons
        kept = (*before[-(_MOST - 1) :], Comparison(time.time(), dict(tips)))
        replace_document(file, _File(kept))


def newest_with(file: Path, id: str) -> Comparison:
    found = next((one for one in reversed(_load(file).comparisons) if id in one.tips), None)
    if found is None:
        raise NotFound(
            f"{id} was not compared with anybody",
            why="The others that go are those of its newest comparison.",
            hint=as_command("af", "compare", id, "OTHER"),
        )
    return found


def _load(file: Path) -> _File:
    if not os.path.lexists(file):
        return _File()
    try:
        content = read_own(file)
        with suppress(msgspec.MsgspecError):
            if msgspec.json.decode(content, type=_Versioned).version > _VERSION:
                raise NewerFile(f"{file} was written by a newer version of af")
        return msgspec.json.decode(content, type=_File)
    except (OSError, msgspec.MsgspecError) as error:
        raise DamagedFile(
            f"{file} is damaged",
            why="It names which builders were compared; no work is in it.",
            hint=as_command("mv", file, f"{file}.damaged"),
        ) from error


class _Versioned(Struct):
    version: int

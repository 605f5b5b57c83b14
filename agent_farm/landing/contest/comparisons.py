"""Records which builders were compared, so that keeping one tells which others to remove.

The newest comparison counts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import file_lock
from agent_farm.documents import load, store
from agent_farm.errors import NotFound
from agent_farm.launch import as_command

_MOST = 100


class Comparison(Struct, frozen=True):
    """`tips` maps each compared builder, proven or not, to the commit that was compared."""

    at: float
    tips: dict[str, str]


class _File(Struct, frozen=True):
    comparisons: tuple[Comparison, ...] = ()


def remember(file: Path, tips: Mapping[str, str]) -> None:
    with file_lock(file.with_suffix(".lock")):
        before = _load(file).comparisons
        kept = (*before[-(_MOST - 1) :], Comparison(time.time(), dict(tips)))
        store(file, _File(kept))


def newest_with(file: Path, id: str) -> Comparison:
    found = next((one for one in reversed(_load(file).comparisons) if id in one.tips), None)
    if found is None:
        raise NotFound(
            f"{id} was not compared with another builder",
            why="The others to remove are those in its newest comparison.",
            hint=as_command("af", "compare", id, "OTHER"),
        )
    return found


def _load(file: Path) -> _File:
    try:
        return load(file, _File, about="It only names which builders were compared; it contains no work.")
    except FileNotFoundError:
        return _File()

"""Finds worktrees in which nothing has happened since git was asked, so that its last answer still holds."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.farm.farm import Farm
from agent_farm.farm.whole_look import TOO_LARGE, settings_look, whole_look

if TYPE_CHECKING:
    from agent_farm.farm.git_state import GitState

# How many of the worktrees that look unchanged are checked in full each time.
_AGAIN = 10
# After this git is asked anyway: a setting may be where nobody looks.
_HOLDS_SECONDS = 600.0


class Unchanged(Struct, frozen=True):
    """`states` still hold; `wholes` is what a look at every file found, in these and some others."""

    states: Mapping[str, GitState] = {}
    wholes: Mapping[str, str] = {}


def find_unchanged(farm: Farm, remembered: Mapping[str, GitState], looks: Mapping[str, str]) -> Unchanged:
    """Among builders that do nothing; `looks` is what `look_at` finds of each now.

    Of many that look unchanged, those not asked for the longest are checked file by file.
    """
    alike = {id: remembered[id] for id in looks if id in remembered and remembered[id].look == looks[id]}
    same = sorted((id for id, state in alike.items() if state.look), key=lambda id: alike[id].at)
    left = {id: alike[id] for id in same[_AGAIN:]}
    others = sorted(looks.keys() - left.keys(), key=lambda id: remembered[id].at if id in remembered else 0)
    wholes = _wholes(farm, alike, others[:_AGAIN])
    now = time.time()
    held = {
        id: replace(alike[id], at=now)
        for id, whole in wholes.items()
        if whole not in ("", TOO_LARGE)
        and id in alike
        and alike[id].whole == whole
        and now - alike[id].asked < _HOLDS_SECONDS
    }
    return Unchanged(left | held, wholes)


def _wholes(farm: Farm, alike: Mapping[str, GitState], ids: Sequence[str]) -> dict[str, str]:
    common = farm.repository.common_dir
    settings = settings_look(common) if ids else ""
    large = {id for id in ids if id in alike and alike[id].whole == TOO_LARGE}
    return {
        id: TOO_LARGE
        if id in large
        else whole_look(str(farm.paths.worktree(id)), f"{common}/worktrees/{id}", settings)
        for id in ids
    }


def look_at(farm: Farm, record: BuilderRecord) -> str:
    """Stands for what almost any change in a worktree affects, read without a process; "" if that is not
    known.

    Not affected by a change to an existing file about which git is not told.
    """
    own = f"{farm.repository.common_dir}/worktrees/{record.id}"
    files = (f"{own}/index", f"{own}/HEAD", f"{own}/logs/HEAD", record.worktree, f"{record.worktree}/.git")
    try:
        found = [os.stat(file) for file in (*files, farm.run(record.id).events)]
    except OSError:
        return ""
    return " ".join(f"{one.st_ino}.{one.st_size}.{one.st_mtime_ns}" for one in found)

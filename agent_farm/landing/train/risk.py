"""How likely each branch's check is to fail, before it is run; and the record it is guessed by.

A guess that is wrong costs checks, and lands nothing: only checks do that.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from agent_farm.disk import file_lock, make_directory, replace_document
from agent_farm.errors import AgentFarmError
from agent_farm.own_files import read_own

# Before anything is on record: 28 % of agents' pull requests conflict with what they are to land on.
_USUAL = 0.28
_WEIGHT = 10.0  # checks that the record needs to count as much as that
_LARGE = 20  # files
_MOST_BUILDERS = 500
_LEAST, _GREATEST = 0.01, 0.95


class Tally(Struct, frozen=True):
    """`failed_tip` is the commit with which it was blamed last."""

    landed: int = 0
    blamed: int = 0
    failed_tip: str | None = None

    def chance(self, before: float) -> float:
        """That the next one fails, where `before` is what one would think without these."""
        return (self.blamed + _WEIGHT * before) / (self.landed + self.blamed + _WEIGHT)


class Record(Struct, frozen=True):
    """How landings in this repository ended: in all, by runtime and by builder."""

    all: Tally = Tally()
    runtimes: dict[str, Tally] = {}
    builders: dict[str, Tally] = {}
    version: int = 1


class Facts(Struct, frozen=True):
    """What is known of a branch. `proof`: its own check, on the target's commit (`here`) or an older one."""

    id: str
    runtime: str
    tip: str
    files: frozenset[str]
    proof: bool | None = None
    here: bool = False


def risks_of(facts: Collection[Facts], record: Record) -> dict[str, float]:
    counts: dict[str, int] = {}
    for one in facts:
        for file in one.files:
            counts[file] = counts.get(file, 0) + 1
    return {one.id: _risk(one, counts, record) for one in facts}


def _risk(one: Facts, counts: Mapping[str, int], record: Record) -> float:
    usual = record.all.chance(_USUAL)
    by_runtime = record.runtimes.get(one.runtime, Tally()).chance(usual)
    own = record.builders.get(one.id, Tally())
    chance = own.chance(by_runtime)
    odds = chance / (1 - chance)
    if one.proof is not None:
        odds *= (0.15 if one.here else 0.4) if one.proof else 6.0
    if own.failed_tip == one.tip:
        odds *= 8.0
    shared = sum(counts[file] > 1 for file in one.files)
    odds *= 1.0 + 0.5 * min(shared, 4)
    if len(one.files) > _LARGE:
        odds *= 1.5
    return min(max(odds / (1 + odds), _LEAST), _GREATEST)


def load_record(file: Path) -> Record:
    """None is kept where it cannot be read: it only helps to guess."""
    if os.path.lexists(file):
        with suppress(OSError, AgentFarmError, msgspec.MsgspecError):
            return msgspec.json.decode(read_own(file), type=Record)
    return Record()


def note_end(file: Path, id: str, runtime: str, *, failed_tip: str | None) -> None:
    """It landed, or was blamed with this commit."""
    make_directory(file.parent)
    with file_lock(file.with_suffix(".lock")):
        before = load_record(file)
        builders = {name: before.builders[name] for name in [*before.builders][-_MOST_BUILDERS:]}
        own = _counted(builders.pop(id, Tally()), failed_tip)
        record = Record(
            _counted(before.all, failed_tip),
            {**before.runtimes, runtime: _counted(before.runtimes.get(runtime, Tally()), failed_tip)},
            {**builders, id: own},
        )
        replace_document(file, record)


def _counted(tally: Tally, failed_tip: str | None) -> Tally:
    if failed_tip is None:
        return structs.replace(tally, landed=tally.landed + 1, failed_tip=None)
    return structs.replace(tally, blamed=tally.blamed + 1, failed_tip=failed_tip)

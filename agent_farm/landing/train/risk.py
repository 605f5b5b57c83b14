"""Estimates how likely each branch's check is to fail, and keeps the record behind the estimate.

A wrong estimate costs checks, but never lands anything: only checks decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from msgspec import Struct, structs

from agent_farm.disk import file_lock
from agent_farm.documents import load_if_whole, store

# Without a record: 28 % of agents' pull requests conflict with their target.
_USUAL = 0.28
_WEIGHT = 10.0  # the number of checks at which the record counts as much as that
_LARGE = 20  # files
_MOST_BUILDERS = 500
_MOST_CONTESTS = 200
_OF_A_CHECK = 0.5  # how much winning or losing a comparison counts, relative to a check
_LEAST, _GREATEST = 0.01, 0.95


class Tally(Struct, frozen=True):
    """`failed_tip` is the last commit it was blamed for; `won` and `lost` count comparisons."""

    landed: int = 0
    blamed: int = 0
    failed_tip: str | None = None
    won: int = 0
    lost: int = 0

    def chance(self, before: float) -> float:
        """The chance that the next check fails; `before` is the estimate without this record."""
        bad = self.blamed + _OF_A_CHECK * self.lost
        return (bad + _WEIGHT * before) / (self.landed + bad + _OF_A_CHECK * self.won + _WEIGHT)


class Record(Struct, frozen=True):
    """How landings and comparisons in this repository ended: in total, by runtime and by builder.

    `contests` are the comparisons already counted, in case one is kept again.
    """

    all: Tally = Tally()
    runtimes: dict[str, Tally] = {}
    builders: dict[str, Tally] = {}
    contests: tuple[float, ...] = ()


class Facts(Struct, frozen=True):
    """What is known about a branch. `proof`: its own check's result, on this target (`here`) or an older."""

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
    """An empty one if it cannot be read: it only improves guesses."""
    return load_if_whole(file, Record) or Record()


def note_end(file: Path, id: str, runtime: str, *, failed_tip: str | None) -> None:
    """Count a landing, or that it was blamed for this commit."""

    def counted(tally: Tally) -> Tally:
        if failed_tip is None:
            return structs.replace(tally, landed=tally.landed + 1, failed_tip=None)
        return structs.replace(tally, blamed=tally.blamed + 1, failed_tip=failed_tip)

    def change(before: Record) -> Record:
        return structs.replace(_with(before, id, runtime, counted), all=counted(before.all))

    _update(file, change)


def note_contest(file: Path, at: float, winner: str, runtimes: Mapping[str, str]) -> None:
    """Count that `winner` was kept of those in `runtimes`, compared `at` that time; counts only once."""

    def won(tally: Tally) -> Tally:
        return structs.replace(tally, won=tally.won + 1)

    def lost(tally: Tally) -> Tally:
        return structs.replace(tally, lost=tally.lost + 1)

    def change(record: Record) -> Record:
        if at in record.contests:
            return record
        for id, runtime in runtimes.items():
            record = _with(record, id, runtime, won if id == winner else lost)
        return structs.replace(record, contests=(*record.contests, at)[-_MOST_CONTESTS:])

    _update(file, change)


def _with(before: Record, id: str, runtime: str, counted: Callable[[Tally], Tally]) -> Record:
    """The record with the tallies of the builder and its runtime replaced by what `counted` returns."""
    builders = {name: before.builders[name] for name in [*before.builders][-_MOST_BUILDERS:]}
    own = counted(builders.pop(id, Tally()))
    runtimes = {**before.runtimes, runtime: counted(before.runtimes.get(runtime, Tally()))}
    return structs.replace(before, runtimes=runtimes, builders={**builders, id: own})


def _update(file: Path, change: Callable[[Record], Record]) -> None:
    with file_lock(file.with_suffix(".lock")):
        store(file, change(load_record(file)))

"""The queue as a value: who waits, what checks have said, and what to do next.

Nothing here knows about git or checks. Every decision follows from the value alone, so a queue whose process
was killed continues as if nothing had happened.

What has passed does not always land at once. It is held, and later checks build on it; it lands once that
overtakes nobody who has waited longer too often. So checks may run in any order, but landings may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from agent_farm.landing.train.groups import first_group

MOST_OVERTAKEN = 2
_RUNS_THAT_BLAME = 2


class Waiting(Struct, frozen=True, forbid_unknown_fields=True):
    """`age`: its place in the queue, lowest for the oldest. `risk`: how likely its check is to fail.

    `clashes`: those it cannot be merged together with. `overtaken`: how many younger ones landed before it.
    """

    id: str
    age: int
    risk: float
    clashes: tuple[str, ...] = ()
    overtaken: int = 0


class Red(Struct, frozen=True, forbid_unknown_fields=True):
    """At least one of `members` fails. `runs` counts red checks of the target, what is held, and them all."""

    members: tuple[str, ...]
    runs: int


class LandingLine(Struct, frozen=True, forbid_unknown_fields=True):
    """`held`: groups that passed, each together with the target and the groups before it.

    `proven`: the target's own tree has passed; `target_runs`: how often it was red instead. `flaky`: groups
    whose check was red and, run again, green.
    """

    waiting: tuple[Waiting, ...] = ()
    held: tuple[tuple[Waiting, ...], ...] = ()
    reds: tuple[Red, ...] = ()
    proven: bool = False
    target_runs: int = 0
    flaky: tuple[tuple[str, ...], ...] = ()

    def ids(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.waiting)

    def held_ids(self) -> tuple[str, ...]:
        return tuple(one.id for group in self.held for one in group)

    def red(self, group: Iterable[str]) -> Red | None:
        wanted = set(group)
        return next((red for red in self.reds if wanted == set(red.members)), None)


class Check(Struct, frozen=True):
    """Check the target, what is held, and `group`, merged in this order; an empty group checks the target
    alone.

    `again`: it has been red once on the very same tree.
    """

    group: tuple[str, ...]
    again: bool = False


class Land(Struct, frozen=True):
    """Land the first held groups, whose tree has passed."""

    ids: tuple[str, ...]


class Blame(Struct, frozen=True):
    """It was red twice, alone on what has passed."""

    id: str


class Stuck(Struct, frozen=True):
    """The target itself was red twice: nobody can be blamed, and nothing can land."""


class Done(Struct, frozen=True):
    """Nobody waits."""


Step = Check | Land | Blame | Stuck | Done


def next_step(line: LandingLine) -> Step:
    row = _row(line)
    landing = _groups_that_may_land(line) if row else len(line.held)
    if landing:
        return Land(tuple(one.id for group in line.held[:landing] for one in group))
    if not row:
        return Done()
    group = _group(line, row)
    known = line.red(group)
    runs = known.runs if known and len(group) == 1 else 0
    if runs < _RUNS_THAT_BLAME:
        return Check(group, again=runs > 0)
    if line.proven:
        return Blame(group[0])
    if line.target_runs < _RUNS_THAT_BLAME:
        return Check((), again=line.target_runs > 0)
    return Stuck()


def _groups_that_may_land(line: LandingLine) -> int:
    """How many of the held groups can land without overtaking anybody more often than allowed."""
    for number in range(len(line.held), 0, -1):
        first = [one for group in line.held[:number] for one in group]
        behind = [*line.waiting, *(one for group in line.held[number:] for one in group)]
        if all(_overtaken(one, first) <= MOST_OVERTAKEN for one in behind):
            return number
    return 0


def _overtaken(one: Waiting, landing: Iterable[Waiting]) -> int:
    return one.overtaken + sum(other.age > one.age for other in landing)


def order_of(line: LandingLine) -> list[Waiting]:
    """Suspects first, then those with the lowest risk; the oldest first among equals."""
    suspected = {id: number for number, red in enumerate(line.reds) for id in red.members}
    last = len(line.reds)
    return sorted(line.waiting, key=lambda one: (suspected.get(one.id, last), round(one.risk, 2), one.age))


def _row(line: LandingLine) -> list[Waiting]:
    """Those that can be checked now. Of two that clash, the younger waits for the outcome of the older."""
    held = set(line.held_ids())
    row = []
    for one in order_of(line):
        older = {other.id for other in line.waiting if other.age < one.age and one.id in other.clashes}
        older |= {other.id for other in line.waiting if other.age < one.age and other.id in one.clashes}
        if not older and not held.intersection(one.clashes):
            row.append(one)
    return row


def _group(line: LandingLine, row: Sequence[Waiting]) -> tuple[str, ...]:
    """The leading ones for the next check."""
    red = next((red for red in line.reds if row[0].id in red.members), None)
    suspects = sum(one.id in red.members for one in row) if red else 0
    size = first_group([one.risk for one in row], suspects)
    return tuple(one.id for one in row[:size])


def with_red(line: LandingLine, group: Sequence[str]) -> LandingLine:
    """The check with `group` was red."""
    if not group:
        return structs.replace(line, target_runs=line.target_runs + 1)
    known, members = line.red(group), frozenset(group)
    others = tuple(red for red in line.reds if not members <= set(red.members))
    return structs.replace(line, reds=(Red(tuple(group), known.runs + 1 if known else 1), *others))


def with_green(line: LandingLine, group: Sequence[str]) -> LandingLine:
    """The check with `group` was green: the group is held."""
    known = line.red(group)
    failed = known.runs if known else 0 if group else line.target_runs
    flaky = (*line.flaky, tuple(group)) if failed else line.flaky
    line = structs.replace(line, flaky=flaky, proven=True, target_runs=0)
    if not group:
        return line
    by_id = {one.id: one for one in line.waiting}
    passed = set(group)
    left = ((red, tuple(id for id in red.members if id not in passed)) for red in line.reds)
    return structs.replace(
        line,
        waiting=tuple(one for one in line.waiting if one.id not in passed),
        held=(*line.held, tuple(by_id[id] for id in group)),
        # the rest is exactly what was red, unless the group also had others in it
        reds=tuple(Red(ids, red.runs if passed <= set(red.members) else 0) for red, ids in left if ids),
    )


def with_landed(line: LandingLine, ids: Iterable[str]) -> LandingLine:
    """The first of those held are on the target now."""
    gone = set(ids)
    landed = [one for group in line.held for one in group if one.id in gone]

    def aged(some: Iterable[Waiting]) -> tuple[Waiting, ...]:
        return tuple(structs.replace(one, overtaken=_overtaken(one, landed)) for one in some)

    held = tuple(aged(group) for group in line.held if not gone.intersection(one.id for one in group))
    return structs.replace(line, waiting=aged(line.waiting), held=held)


def without(line: LandingLine, id: str) -> LandingLine:
    """It was blamed, or does not merge: a red check that it was part of tells nothing about the others."""
    return structs.replace(
        line,
        waiting=tuple(one for one in line.waiting if one.id != id),
        reds=tuple(red for red in line.reds if id not in red.members),
    )


def with_moved_target(line: LandingLine, touched: Iterable[str]) -> LandingLine:
    """Somebody else's commit is on the target, and touches files of `touched`.

    What was held waits again. Nothing is known about the touched ones any more; of a red group without them,
    one still fails, until a check of the new tree says otherwise.
    """
    some = set(touched)
    back = (one for group in line.held for one in group)
    return structs.replace(
        line,
        waiting=tuple(sorted((*line.waiting, *back), key=lambda one: one.age)),
        held=(),
        reds=tuple(Red(red.members, 0) for red in line.reds if not some & set(red.members)),
        proven=False,
        target_runs=0,
    )


def with_clash(line: LandingLine, id: str, others: Iterable[str]) -> LandingLine:
    """It merges with the target, but not with all of these together."""
    some = set(others)
    return structs.replace(
        line,
        waiting=tuple(
            structs.replace(one, clashes=tuple(sorted({*one.clashes, *some}))) if one.id == id else one
            for one in line.waiting
        ),
    )


def with_added(line: LandingLine, more: Iterable[Waiting]) -> LandingLine:
    """Put them at the end of the queue; one that is already in it keeps its place."""
    known = {*line.ids(), *line.held_ids()}
    return structs.replace(line, waiting=(*line.waiting, *(one for one in more if one.id not in known)))

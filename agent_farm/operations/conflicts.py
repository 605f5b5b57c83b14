"""`conflicts`: which builders' work git could not merge by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import Annotated, NamedTuple

from msgspec import Meta, structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import CheckedOut
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.merge_trees import Hunk, MergeResult, conflict_hunks, merge_results
from agent_farm.git.snapshots import snapshot
from agent_farm.landing.order import LandingOrder, landing_order
from agent_farm.operations.builders import SomeOrAll, choose_all
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request

_MOST_HUNKS = 50  # of one pair


class Conflicts(Request):
    ids: SomeOrAll = ()
    uncommitted: Annotated[
        bool, Meta(description="Compare the worktrees as they are, uncommitted and untracked files included")
    ] = False
    hunks: Annotated[bool, Meta(description="Include the conflicting lines, with git's markers")] = False


class Conflict(Answer):
    """Two that cannot both land as they are; the second may be the base."""

    one: str
    other: str
    files: tuple[str, ...]
    hunks: tuple[Hunk, ...] = ()


class Uncompared(Answer):
    """Two that could not be compared: one does not exist, or git must not be run there."""

    one: str
    other: str
    reason: str


class ForeseenConflicts(Answer):
    """`compared` are the builders that were looked at.

    `order` is an order of landing in which the fewest meet a conflict; `rework` are those that do.
    """

    conflicts: tuple[Conflict, ...]
    unknown: tuple[Uncompared, ...]
    compared: tuple[str, ...]
    order: tuple[str, ...] = ()
    rework: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return 1 if self.conflicts or self.unknown else 0


class _Side(NamedTuple):
    """One of two that are compared: its name, the ref for git, and why a person may miss something in it."""

    name: str
    ref: str
    branch: str
    problem: str = ""


_Pair = tuple[_Side, _Side]


@reads(
    "Preview which builders' work conflicts, with each other and with their base",
    pool="conflicts",
    elsewhere="home",
)
def conflicts(context: Context, request: Conflicts) -> ForeseenConflicts:
    farm = context.farm
    named = {record.id: record for record in choose_all(context, request.ids)}
    records = [record for record in (named or farm.records()).values() if record.state != "queued"]
    own = [_side(farm, record, whole=request.uncommitted) for record in records]
    bases = [_Side(record.base, record.base, record.base) for record in records]
    pairs = [*combinations(own, 2), *zip(own, bases, strict=True)]
    asked = [pair for pair in pairs if not _problems(pair)]
    found = merge_results(farm.repository, [(one.ref, other.ref) for one, other in asked])
    answers = list(zip(asked, found, strict=True))
    refused = (Uncompared(*_names(pair), _problems(pair)) for pair in pairs if _problems(pair))
    gone = _uncompared(farm, [pair for pair, result in answers if result is None])
    conflicts = [(pair, result) for pair, result in answers if result and result.conflicts]
    order = _order(records, conflicts)
    return ForeseenConflicts(
        conflicts=tuple(_conflict(farm, pair, result, request) for pair, result in conflicts),
        unknown=(*refused, *gone),
        compared=tuple(record.id for record in records),
        order=order.ids,
        rework=order.rework,
    )


def _conflict(farm: Farm, pair: _Pair, result: MergeResult, request: Conflicts) -> Conflict:
    hunks = islice(conflict_hunks(farm.repository, result), _MOST_HUNKS) if request.hunks else ()
    shown = (structs.replace(hunk, text=_with_names(hunk.text, *_names(pair))) for hunk in hunks)
    return Conflict(*_names(pair), result.conflicts, tuple(shown))


def _with_names(text: str, one: str, other: str) -> str:
    """Replace the commits in git's markers by names."""
    _, *lines, _ = text.split("\n")
    return "\n".join([f"<<<<<<< {one}", *lines, f">>>>>>> {other}"])


def _order(records: Sequence[BuilderRecord], conflicts: Sequence[tuple[_Pair, MergeResult]]) -> LandingOrder:
    """A base is not a builder: work that conflicts with it needs rework first."""
    ids = [record.id for record in records]
    names = [_names(pair) for pair, _ in conflicts]
    between = [(one, other) for one, other in names if other in ids]
    return landing_order(ids, between, {one for one, other in names if other not in ids})


def _side(farm: Farm, record: BuilderRecord, *, whole: bool) -> _Side:
    try:
        tree = farm.tree_if_there(record)
        if tree and whole:
            return _Side(record.id, snapshot(farm.repository, tree), record.branch)
        out = tree.checked_out() if tree else CheckedOut(record.branch, None)
    except AgentFarmError as error:
        return _Side(record.id, "", record.branch, error.what)
    return _Side(record.id, out.name, out.branch or f"commit {out.name}")


def _names(pair: _Pair) -> tuple[str, str]:
    return pair[0].name, pair[1].name


def _problems(pair: _Pair) -> str:
    return " and ".join(side.problem for side in pair if side.problem)


def _uncompared(farm: Farm, pairs: Sequence[_Pair]) -> Iterator[Uncompared]:
    if not pairs:
        return
    there = resolve_commits(farm.repository, {side.ref for pair in pairs for side in pair})
    for pair in pairs:
        gone = " and ".join(side.branch for side in pair if there[side.ref] is None)
        yield Uncompared(*_names(pair), f"there is no {gone}")

"""`af diff` and `af conflicts`: what builders have changed, and what would not merge by itself.

Both look at what is checked out in the worktree, whatever branch that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.git.builder_tree import BuilderTree, CheckedOut, WorktreeMismatch
from agent_farm.git.command import git_deadline
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.merge_trees import merge_tree_conflicts
from agent_farm.git.remotes import find_base
from agent_farm.git.showing import diff_commits, diff_worktree, start_of_work
from agent_farm.launch import as_command

# Far more than git needs; a FIFO that somebody named `.gitignore` would have it wait for ever.
_DIFF_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Difference:
    """`commit` and `branch` are what is checked out; no branch when HEAD is detached."""

    text: str
    commit: str
    branch: str | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two branches that cannot both land as they are; the second may be the base."""

    one: str
    other: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Uncompared:
    """Two branches of which one does not exist or may not be asked: whether they conflict is not known."""

    one: str
    other: str
    reason: str


@dataclass(frozen=True, slots=True)
class Foreseen:
    conflicts: tuple[Conflict, ...]
    unknown: tuple[Uncompared, ...] = ()


def diff(farm: Farm, record: BuilderRecord, *, committed: bool, stat: bool, color: bool) -> Difference:
    """What the builder changed since it began, uncommitted and untracked files included.

    What it took in from its base meanwhile is not its own, and left out. Without a worktree it is what the
    builder's branch holds.
    """
    repository = farm.repository
    with git_deadline(_DIFF_SECONDS):
        tree = _tree_if_there(farm, record)
        out = tree.checked_out() if tree else CheckedOut(record.branch, None)
        tip = resolve_commits(repository, [out.name])[out.name]
        if tip is None:
            raise _no_commit(record, out)
        bases = find_base(repository, record.base).refs
        start = start_of_work(repository, record.base_commit, tip, bases)
        if tree is None or committed:
            text = diff_commits(repository, start, tip, stat=stat, color=color)
        else:
            text = diff_worktree(tree, start, stat=stat, color=color)
    return Difference(text, tip, out.branch)


def foresee_conflicts(farm: Farm, records: Sequence[BuilderRecord]) -> Foreseen:
    """Every pair of builders, and every builder with its base, that git could not merge by itself."""
    own = [_side(farm, record) for record in records]
    bases = [_Side(record.base, record.base, record.base) for record in records]
    pairs = [*combinations(own, 2), *zip(own, bases, strict=True)]
    asked = [(one, other) for one, other in pairs if not (one.problem or other.problem)]
    found = merge_tree_conflicts(farm.repository, [(one.ref, other.ref) for one, other in asked])
    answers = list(zip(asked, found, strict=True))
    conflicts = (Conflict(one.name, other.name, files) for (one, other), files in answers if files)
    refused = (Uncompared(*_names(pair), _problems(pair)) for pair in pairs if _problems(pair))
    gone = _uncompared(farm, [pair for pair, files in answers if files is None])
    return Foreseen(tuple(conflicts), (*refused, *gone))


class _Side(NamedTuple):
    """One of two that are compared: how it is called, what git is asked, and what a person may miss."""

    name: str
    ref: str
    branch: str
    problem: str = ""


def _side(farm: Farm, record: BuilderRecord) -> _Side:
    try:
        tree = _tree_if_there(farm, record)
        out = tree.checked_out() if tree else CheckedOut(record.branch, None)
    except AgentFarmError as error:
        return _Side(record.id, "", record.branch, error.what)
    return _Side(record.id, out.name, out.branch or f"commit {out.name}")


def _tree_if_there(farm: Farm, record: BuilderRecord) -> BuilderTree | None:
    try:
        return farm.tree(record)
    except WorktreeMismatch as error:
        if error.word == "no tree":
            return None
        raise


def _no_commit(record: BuilderRecord, out: CheckedOut) -> AgentFarmError:
    switch = as_command("git", "-C", record.worktree, "switch", record.branch)
    if out.branch == record.branch:
        return NotFound(f"There is no branch {record.branch}", hint="af doctor")
    return NotFound(f"{record.id} has {out.branch} checked out, which has no commit", hint=switch)


def _names(pair: Iterable[_Side]) -> tuple[str, str]:
    one, other = pair
    return one.name, other.name


def _problems(pair: Iterable[_Side]) -> str:
    return " and ".join(side.problem for side in pair if side.problem)


def _uncompared(farm: Farm, pairs: Sequence[tuple[_Side, _Side]]) -> Iterator[Uncompared]:
    if not pairs:
        return
    there = resolve_commits(farm.repository, {side.ref for pair in pairs for side in pair})
    for one, other in pairs:
        gone = " and ".join(side.branch for side in (one, other) if there[side.ref] is None)
        yield Uncompared(one.name, other.name, f"there is no {gone}")

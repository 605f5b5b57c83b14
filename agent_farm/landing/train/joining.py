"""Puts builders into the landing queue, with what is known about their work."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from pathlib import Path

from msgspec import Struct, structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.declared_checks import Check, declared_checks
from agent_farm.farm.farm import Farm
from agent_farm.git.changes import operation_of
from agent_farm.git.checkout import Checkout, Head, WorktreeMismatch, checkout_at
from agent_farm.git.divergence import commit_trees
from agent_farm.git.git_process import run_git
from agent_farm.git.merge_trees import merged_trees
from agent_farm.git.merging import Strategy
from agent_farm.git.snapshots import snapshot
from agent_farm.landing.train.landing_journal import Entry, Queue, with_newer
from agent_farm.landing.train.line import LandingLine, Waiting, with_added
from agent_farm.landing.train.risk import Facts, load_record, risks_of
from agent_farm.landing.train.world import files_of
from agent_farm.landing.verdicts import kept_verdict
from agent_farm.landing.work import FoundWork
from agent_farm.launch import as_command


def new_queue(checkout: Checkout, head: Head, strategy: Strategy, checks: Collection[Check]) -> Queue:
    assert head.branch is not None
    return Queue(
        head.branch,
        place_of(checkout),
        strategy,
        head.commit,
        LandingLine(),
        {},
        started_at=time.time(),
        commands=commands_of(checks),
    )


def commands_of(checks: Collection[Check]) -> tuple[str, ...]:
    return tuple(check.command for check in checks)


def place_of(checkout: Checkout) -> str | None:
    """How a queue names the checkout: None for the main one, since the whole farm may be moved."""
    return None if checkout.worktree_name is None else str(checkout.path)


def checkout_of(farm: Farm, queue: Queue) -> Checkout:
    try:
        return checkout_at(farm.repository, Path(queue.checkout) if queue.checkout else farm.root)
    except WorktreeMismatch as error:
        error.hint = "af land --abort"
        raise


def entry_of(farm: Farm, record: BuilderRecord, found: FoundWork, *, whole: bool = False) -> Entry:
    """What is queued of a builder's work; with `whole`, uncommitted files as well."""
    work, tip = found.work, found.work.tip
    if whole and found.left_behind:
        tip = _with_uncommitted(farm, record, tip)
    return Entry(record.id, tip, work.name, work.subject, work.trailer, record.created_at)


def _with_uncommitted(farm: Farm, record: BuilderRecord, tip: str) -> str:
    """The user's own commit, since it stays in the history."""
    tree = farm.tree(record)
    operation = operation_of(tree)
    if operation is not None:
        raise AgentFarmError(
            f"A {operation} is under way in the worktree of {record.id}",
            why="Its uncommitted files are only half of the result.",
            hint=as_command("git", "-C", tree.path, "status"),
        )
    whole = f"{snapshot(farm.repository, tree)}^{{tree}}"
    message = f"Uncommitted work of {record.id}\n"
    return run_git(farm.root, "commit-tree", whole, "-p", tip, input=message).strip()


class Guess(Struct, frozen=True):
    """About one branch: the chance that its check will fail, and what it cannot be merged with."""

    risk: float
    clashes: tuple[str, ...]


def joined(queue: Queue, entries: Collection[Entry], guesses: Mapping[str, Guess]) -> Queue:
    """The queue with these at its end, in this order. A returned one may try again with other commits.

    One that is waiting keeps its place, and gets its newer commit.
    """
    for one in newer_than_in(queue, entries):
        queue = with_newer(queue, one, guesses[one.id].risk, guesses[one.id].clashes)
    inside = {*queue.line.ids(), *queue.line.held_ids()}
    new = [one for one in entries if one.id not in inside]
    waiting = [
        Waiting(one.id, age, guesses[one.id].risk, guesses[one.id].clashes)
        for age, one in enumerate(new, queue.next_age)
    ]
    again = {one.id for one in new}
    return structs.replace(
        queue,
        line=with_added(queue.line, waiting),
        entries={**queue.entries, **{one.id: one for one in new}},
        returned=tuple(one for one in queue.returned if one.id not in again or one.told is None),
        next_age=queue.next_age + len(new),
        sifted=queue.sifted and not new,
    )


def newer_than_in(queue: Queue, entries: Collection[Entry]) -> list[Entry]:
    """Those that are queued with another commit; what is landing right now is left out."""
    landing = queue.moving.ids if queue.moving else ()
    inside = {*queue.line.ids(), *queue.line.held_ids()}.difference(landing)
    return [one for one in entries if one.id in inside and one != queue.entries[one.id]]


def told_of_newer(queue: Queue, entries: Collection[Entry]) -> Iterator[str]:
    for one in newer_than_in(queue, entries):
        yield f"{one.id} was queued with {queue.entries[one.id].tip[:10]}; {one.tip[:10]} replaces it"


def guesses_of(
    farm: Farm, records: Collection[BuilderRecord], entries: Collection[Entry], head: str
) -> dict[str, Guess]:
    runtimes = {record.id: record.runtime for record in records}
    tips = {one.id: one.tip for one in entries}
    files = files_of(farm, head, tips)
    own = commit_trees(farm.repository, tips.values())
    merged = merged_trees(farm.repository, [(head, tip) for tip in tips.values()])
    checks = declared_checks(farm)
    facts = []
    for (id, tip), result in zip(tips.items(), merged, strict=True):
        here = None if result.conflicts else kept_verdict(farm, result.tree, checks)
        before = kept_verdict(farm, own[tip], checks)
        known = here or before
        proof = known.passed if known else None
        facts.append(Facts(id, runtimes[id], tip, files[id], proof, here is not None))
    risks = risks_of(facts, load_record(farm.paths.landing_record))
    clashes = _clashes(farm, tips, files)
    return {id: Guess(risks[id], clashes[id]) for id in tips}


def _clashes(
    farm: Farm, tips: Mapping[str, str], files: Mapping[str, frozenset[str]]
) -> dict[str, tuple[str, ...]]:
    """The clashes among pairs that share files; any other clash is found when the merge is tried."""
    pairs = [(one, other) for one, other in combinations(tips, 2) if files[one] & files[other]]
    results = merged_trees(farm.repository, [(tips[one], tips[other]) for one, other in pairs])
    found = [pair for pair, result in zip(pairs, results, strict=True) if result.conflicts]
    return {id: tuple(other for pair in found if id in pair for other in pair if other != id) for id in tips}

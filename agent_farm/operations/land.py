"""`land`, `land_status`, `land_continue`, `land_abort`: the landing queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Annotated, cast

from msgspec import Meta, structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import CUT_SHORT, FINISHED
from agent_farm.disk import file_lock, is_locked
from agent_farm.errors import AgentFarmError, LockTaken, UsageError
from agent_farm.farm.declared_checks import Check, agree_to_checks
from agent_farm.farm.listing import read_statuses
from agent_farm.git.checkout import Checkout, Head
from agent_farm.git.landed import have_landed
from agent_farm.git.merging import Strategy, on_no_branch
from agent_farm.landing.place import landing_place, require_base
from agent_farm.landing.proving import require_checks
from agent_farm.landing.train.joining import (
    checkout_of,
    commands_of,
    entry_of,
    guesses_of,
    joined,
    new_queue,
    place_of,
    told_of_newer,
)
from agent_farm.landing.train.landing_journal import Queue, Store, under_commands
from agent_farm.landing.work import find_work
from agent_farm.operations.builders import BuilderIds, Yes, choose_all
from agent_farm.operations.declare import in_parts
from agent_farm.operations.land_steps import (
    Part,
    is_left_to_another,
    leave_to_another,
    sifted,
    work_off,
)
from agent_farm.operations.landing_queue import LandingQueue, shown
from agent_farm.operations.merge import Here, How
from agent_farm.operations.operation import Context, Nothing, Request

InBackground = Annotated[
    bool, Meta(description="Return at once; another process works the queue off (see `af land --status`)")
]

_READY = {*FINISHED, "idle"}
_SECONDS = 20.0
_MOMENT = 0.2  # somebody who only looks may hold the lock of a landing this many seconds


class Land(Request):
    ids: Annotated[
        BuilderIds,
        Meta(description="Ids of builders; default: all whose turn has ended, with commits to land here"),
    ] = ()
    strategy: How = None
    here: Here = False
    include_uncommitted: Annotated[
        bool, Meta(description="Also land uncommitted changes; the worktree itself stays as it is")
    ] = False
    background: InBackground = False
    dry_run: Annotated[bool, Meta(description="Show the order and the first groups, and do nothing")] = False
    yes: Yes = False


class LandContinue(Request):
    background: InBackground = False
    yes: Yes = False


def _last(parts: Sequence[Part]) -> LandingQueue:
    return [part for part in parts if isinstance(part, LandingQueue)][-1]


@in_parts(
    "Land builders' work in groups that pass the checks, on the branch checked out here",
    _last,
    effect="changes",
    outside=True,
    details="Each check runs on exactly the tree that lands. Work that conflicts, or fails a check by"
    " itself, goes back to its builder as a message, and the queue moves on. A landing that was killed"
    " is on record and can be continued.",
    elsewhere="home",
)
def land(context: Context, request: Land) -> Iterator[Part]:
    farm, strategy = context.farm, _strategy(context, request)
    checkout = landing_place(farm)
    head = checkout.head()
    if head.branch is None:
        raise on_no_branch(checkout.path)
    records = _chosen(context, request, checkout, head)
    checks = require_checks(farm)
    works = {record.id: find_work(farm, record) for record in records}
    entries = [
        entry_of(farm, record, works[record.id], whole=request.include_uncommitted) for record in records
    ]
    guesses = guesses_of(farm, records, entries, head.commit)

    def queue_of(before: Queue | None) -> Queue:
        if before is None or before.closed:
            before = new_queue(checkout, head, strategy, checks)
        for text in told_of_newer(before, entries):
            context.tell(text)
        return joined(before, entries, guesses)

    for record in records:
        if (left := works[record.id].left_behind) and not request.include_uncommitted:
            context.tell(f"{record.id} has uncommitted files, which do not land: {', '.join(left[:5])}")
    store = Store(farm.paths.landing)
    if request.dry_run:
        if not is_locked(farm.paths.landing_lock):
            _require_none_cut_short(store.read())
        yield shown(sifted(context, queue_of(None), checks), "none")
        return
    agree_to_checks(farm, checks, yes=request.yes, ask=context.ask)
    with ExitStack() as held:
        try:
            held.enter_context(file_lock(farm.paths.landing_lock, wait=_MOMENT))
        except LockTaken:
            if _is_added(context, store, queue_of, checkout, head, request.strategy):
                yield shown(store.require(), "running")
                return
            held.enter_context(file_lock(farm.paths.landing_lock))
        else:
            before = store.read()
            _require_none_cut_short(before)
            if before is not None and not before.closed:
                _require_same(context, before, checkout, head, request.strategy)
            store.put(queue_of)
        yield from _work_off(context, store, checks, background=request.background)


def _strategy(context: Context, request: Land) -> Strategy:
    strategy = request.strategy or cast(Strategy, context.farm.settings.text("merge.strategy"))
    if strategy == "ff":
        raise UsageError(
            "The queue cannot land fast-forwards only",
            why="Only the first of several branches could be fast-forwarded.",
            hint="af land --strategy rebase",
        )
    return strategy


def _work_off(context: Context, store: Store, checks: Sequence[Check], *, background: bool) -> Iterator[Part]:
    if background:
        yield leave_to_another(context, store)
    else:
        yield from work_off(context, store, checks)


def _require_none_cut_short(queue: Queue | None) -> None:
    if queue is None or queue.closed or is_left_to_another(queue):
        return
    waits = [*queue.line.held_ids(), *queue.line.ids()]
    raise AgentFarmError(
        f"A landing on {queue.into} was cut short",
        why=f"In its queue: {', '.join(waits)}" if waits else None,
        evidence=queue.problem,
        hint="af land --continue",
    )


def _is_added(
    context: Context,
    store: Store,
    make: Callable[[Queue | None], Queue],
    checkout: Checkout,
    head: Head,
    strategy: Strategy | None,
) -> bool:
    """Add to the queue that another af works off, which looks for more; False if that has ended."""
    running = store.read()
    if running is not None and not running.closed:
        _require_same(context, running, checkout, head, strategy)
    queue = store.put(make)
    if running is None or queue.started_at != running.started_at:
        context.tell("Waiting for a landing that is about to end")
        return False
    context.tell("A landing is under way; these are in its queue now.")
    return True


def _require_same(
    context: Context, running: Queue, checkout: Checkout, head: Head, strategy: Strategy | None
) -> None:
    elsewhere = (running.into, running.checkout) != (head.branch, place_of(checkout))
    if elsewhere or strategy not in (None, running.strategy):
        place = checkout_of(context.farm, running).path
        raise LockTaken(
            f"A landing on {running.into} in {place}, by {running.strategy}, is under way",
            why="Only one can run at a time.",
            hint="af land --status",
        )


def _chosen(context: Context, request: Land, checkout: Checkout, head: Head) -> list[BuilderRecord]:
    """In the order named; if none is named, the oldest first."""
    farm = context.farm
    if request.ids:
        named = choose_all(context, request.ids)
        for record in named:
            require_base(farm, record, checkout, head, here=request.here, verb="land")
        return named
    records = list(farm.records().values())
    statuses = read_statuses(farm, records)
    found = []
    for record in records:
        status = statuses[record.id]
        if status.state not in _READY:
            continue
        if status.cut_short:
            context.tell(f"{record.id} is left out: {CUT_SHORT}")
            continue
        try:
            require_base(farm, record, checkout, head, here=request.here, verb="land")
            work = find_work(farm, record)
        except AgentFarmError as error:
            why = error.what.removeprefix(f"{record.id} ")
            context.tell(f"{record.id} is left out: {why}{f' ({error.hint})' if error.hint else ''}")
            continue
        if have_landed(farm.repository, [work.work.tip], [head.commit], timeout=_SECONDS) is not True:
            found.append(record)
    if not found:
        raise AgentFarmError(
            "No builder has anything to land here",
            why="Without ids, builders land whose turn has ended and that have commits for the branch here.",
            hint="af status",
        )
    return found


@in_parts("Show the landing queue", _last, effect="reads", tolerant=True, pool="look", elsewhere="home")
def land_status(context: Context, request: Nothing) -> Iterator[Part]:
    farm = context.farm
    queue = Store(farm.paths.landing).read()
    if queue is None:
        yield LandingQueue("none", None)
        return
    running = is_locked(farm.paths.landing_lock) or (not queue.closed and is_left_to_another(queue))
    yield shown(queue, "running" if running else "done" if queue.closed else "stopped")


@in_parts("Continue an interrupted landing", _last, effect="changes", outside=True, elsewhere="home")
def land_continue(context: Context, request: LandContinue) -> Iterator[Part]:
    farm = context.farm
    checks = require_checks(farm)
    busy = LockTaken("A landing is under way", hint="af land --status")
    with file_lock(farm.paths.landing_lock, wait=_MOMENT, busy=busy):
        store = Store(farm.paths.landing)
        queue = store.read()
        if queue is None or queue.closed:
            raise AgentFarmError("There is no landing to continue", hint="af land")
        agree_to_checks(farm, checks, yes=request.yes, ask=context.ask)
        commands = commands_of(checks)
        # what failed on the branch itself may have been fixed outside it
        store.update(
            lambda now: under_commands(
                structs.replace(now, line=structs.replace(now.line, target_runs=0)), commands
            )
        )
        yield from _work_off(context, store, checks, background=request.background)

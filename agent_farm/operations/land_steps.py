"""Works off the landing queue for `land` and `land_continue`, and reports what happens."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from msgspec import structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, ConsentNeeded
from agent_farm.farm.checkout_cost import refill_later
from agent_farm.farm.declared_checks import Check
from agent_farm.farm.farm import Farm
from agent_farm.farm.submissions import was_submitted
from agent_farm.farm.waiting import start_later
from agent_farm.git.divergence import commit_trees
from agent_farm.landing.train.driving import Came, Event, GroupChecked, Moved, Present, TargetIsRed, drive
from agent_farm.landing.train.joining import checkout_of
from agent_farm.landing.train.landing_journal import Queue, Returned, Store, found_present, returned
from agent_farm.landing.train.line import Check as CheckStep
from agent_farm.landing.train.world import FarmWorld
from agent_farm.operations.landing_queue import (
    CameBack,
    HasLanded,
    LandingQueue,
    came_back,
    message_of,
    shown,
)
from agent_farm.operations.operation import Context
from agent_farm.operations.send import Send, send
from agent_farm.own_process import start_af

_MANY_CORES = 4
_BEGINS_WITHIN = 30.0  # seconds; a process that has not started by then never will

Part = LandingQueue | HasLanded | CameBack


def sifted(context: Context, queue: Queue, checks: Sequence[Check]) -> Queue:
    """The queue without builders that cannot be merged or have nothing to land; no messages are sent."""
    farm = context.farm
    world = FarmWorld(
        farm, checkout_of(farm, queue), queue.into, checks, lambda record, queue, one: "", context.tell
    )
    for id, found in world.sift(queue).items():
        queue = returned(queue, found) if found else found_present(queue, id)
    return queue


def work_off(context: Context, store: Store, checks: Sequence[Check]) -> Iterator[Part]:
    """Called under the lock of whoever works the queue off."""
    farm = context.farm
    queue = store.update(lambda now: structs.replace(now, left_at=None, problem=()))
    store = Store(store.file, queue.started_at)
    checkout = checkout_of(farm, queue)
    world = FarmWorld(farm, checkout, queue.into, checks, partial(_give_back, context), context.tell)
    yield shown(queue, "running")
    try:
        for event in drive(world, store, _at_once(farm)):
            if isinstance(event, Queue):
                yield structs.replace(shown(event, "done"), notes=tuple(world.notes))
            yield from _parts(event, context, store)
            if isinstance(event, Came):
                start_later(farm)  # they may have waited for what has landed
                refill_later(farm)
    except ConsentNeeded as error:  # a command that landed just now needs consent
        error.hint = "af land --continue --yes"
        _note_problem(store, error)
        raise
    except AgentFarmError as error:
        if isinstance(error, TargetIsRed):
            error.evidence = world.last_words()
        _note_problem(store, error)
        raise
    except KeyboardInterrupt:
        context.tell("Interrupted. The queue is kept: af land --continue")
        raise


def _note_problem(store: Store, error: AgentFarmError) -> None:
    """Store the problem for whoever looks at the queue later."""
    told = tuple(filter(None, (error.what, error.why, *error.evidence)))
    with suppress(AgentFarmError):
        store.update(lambda now: structs.replace(now, problem=told))


def leave_to_another(context: Context, store: Store) -> LandingQueue:
    """Called under the lock, which the other process takes once it is released."""
    queue = store.update(lambda now: structs.replace(now, left_at=time.time(), problem=()))
    start_af(context.farm.root, "land", "--continue")
    return shown(queue, "running")


def is_left_to_another(queue: Queue) -> bool:
    return queue.left_at is not None and time.time() - queue.left_at < _BEGINS_WITHIN


def _at_once(farm: Farm) -> int:
    wanted = farm.settings.number("landing.checks_at_once")
    return wanted or (2 if len(os.sched_getaffinity(0)) >= _MANY_CORES else 1)


def _parts(event: Event, context: Context, store: Store) -> Iterator[Part]:
    if isinstance(event, Returned):
        yield came_back(event)
    elif isinstance(event, Came):
        tree = commit_trees(context.farm.repository, [event.commit])[event.commit]
        yield from (HasLanded(id, event.commit, tree) for id in event.ids)
    elif isinstance(event, CheckStep):
        what = ", ".join(event.group) or "the branch itself"
        context.tell(f"Checking {what}{' once more' if event.again else ''}")
    elif isinstance(event, GroupChecked):
        context.tell("  green" if event.green else "  red")
    elif isinstance(event, Moved):
        context.tell(f"Somebody has committed; continuing from {event.head[:12]}")
    elif isinstance(event, Present):
        context.tell(f"{event.id} has nothing to land")


def _give_back(context: Context, record: BuilderRecord, queue: Queue, one: Returned) -> str:
    """Send the work back to its builder, which mends it.

    If an af was killed while sending, nothing is sent again: the runtime's report tells whether it arrived.
    """
    if one.sent_at is not None:
        if was_submitted(context.farm, record, message_of(queue, one), since=one.sent_at):
            return "submitted"
        return "failed: af was killed while sending it, and nothing confirms that it arrived"
    order = Send((record.id,), message_of(queue, one))
    try:
        (delivered,) = send.answer_to(structs.replace(context, whole_ids=True), order).deliveries
    except AgentFarmError as error:
        return f"failed: {error.sentence}"
    return delivered.told

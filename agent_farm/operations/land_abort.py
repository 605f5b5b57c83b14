"""`land_abort`: empty the landing queue."""

from __future__ import annotations

from contextlib import suppress

from msgspec import structs

from agent_farm.disk import is_locked
from agent_farm.errors import AgentFarmError
from agent_farm.git.checkout import WorktreeMismatch
from agent_farm.git.landed import have_landed
from agent_farm.git.settling import settle_interrupted_move
from agent_farm.landing.place import landing_lock
from agent_farm.landing.train.joining import checkout_of
from agent_farm.landing.train.landing_journal import Move, Queue, Store
from agent_farm.operations.declare import acts
from agent_farm.operations.landing_queue import LandingQueue, shown
from agent_farm.operations.operation import Context, Nothing

_SECONDS = 20.0


@acts("Empty the landing queue: what has landed stays, nothing else lands", elsewhere="home")
def land_abort(context: Context, request: Nothing) -> LandingQueue:
    """What has landed stays; another af that works the queue off ends at its next step."""
    farm = context.farm
    store = Store(farm.paths.landing)
    queue = store.read()
    if queue is None:
        raise AgentFarmError("There is no landing to abort", hint="af land")
    running = is_locked(farm.paths.landing_lock)
    store.remove()
    gone = set[str]()
    if queue.moving is not None:
        ids = ", ".join(queue.moving.ids)
        if running:
            context.tell(f"In the middle of landing: {ids}; af status says whether they have")
            gone = set(queue.moving.ids)
        elif _has_moved(context, queue, queue.moving):
            context.tell(f"It was cut short after these had landed: {ids}")
            gone = set(queue.moving.ids)
    emptied = shown(queue, "none")
    return structs.replace(emptied, waiting=tuple(one for one in emptied.waiting if one.id not in gone))


def _has_moved(context: Context, queue: Queue, move: Move) -> bool:
    """Whether an interrupted move was made; settles what it left half done."""
    farm = context.farm
    with suppress(WorktreeMismatch):  # the worktree it was to land in is gone
        checkout = checkout_of(farm, queue)
        with landing_lock(farm, checkout, tell=context.tell):
            settle_interrupted_move(checkout)
            return (
                have_landed(farm.repository, [move.after], [checkout.head().commit], timeout=_SECONDS) is True
            )
    return False

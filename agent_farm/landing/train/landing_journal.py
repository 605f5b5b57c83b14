"""The landing queue on disk: one small file, rewritten at each step, so that a killed run can continue."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from agent_farm.builders.ref_names import ObjectName
from agent_farm.disk import file_lock
from agent_farm.documents import damaged, load, store
from agent_farm.errors import AgentFarmError
from agent_farm.git.merging import Strategy
from agent_farm.landing.train.line import (
    LandingLine,
    with_landed,
    with_moved_target,
    without,
)

_ABOUT = "It only names what waits to land. No work is lost with it: the branches exist."


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One branch as it was queued: later commits of its builder would be another landing.

    `made_at` tells the builder from a later one with the same id.
    """

    id: str
    tip: ObjectName
    name: str
    subject: str
    trailer: str
    made_at: str


class Move(Struct, frozen=True, forbid_unknown_fields=True):
    """The target is about to go from `before` to `after`, with `ids`, whose tree passed."""

    before: ObjectName
    after: ObjectName
    ids: tuple[str, ...]


class Landed(Struct, frozen=True, forbid_unknown_fields=True):
    """`commit` is what the target moved to, `tree` is what passed the check."""

    id: str
    commit: ObjectName
    tree: ObjectName


class Returned(Struct, frozen=True, forbid_unknown_fields=True):
    """What did not land, and goes back to its builder. `told` says how the message was delivered.

    `sent_at` is when sending began; that process may have been killed before `told` was recorded.
    """

    id: str
    kind: Literal["conflict", "red", "refused"]
    what: str
    evidence: tuple[str, ...] = ()
    log: str | None = None
    told: str | None = None
    sent_at: float | None = None


class Queue(Struct, frozen=True, forbid_unknown_fields=True):
    """The queue for the branch `into` at the commit `head`; `line` says who waits and what is known.

    `checkout` is a linked worktree of the user's own, None for the main checkout.

    `passed` are the trees of what `line` holds, one for each group. `sifted`: everyone waiting was tried
    against `head` alone, to see conflicts. `present` are those whose work the target already had. `closed`:
    it was worked off, and whoever joins now starts another. `commands` are the checks that `passed` is about.
    `left_at` is when it was handed to another process, which has not started yet. `problem` says why it
    stopped.
    """

    into: str
    checkout: str | None
    strategy: Strategy
    head: ObjectName
    line: LandingLine
    entries: dict[str, Entry]
    passed: tuple[ObjectName, ...] = ()
    sifted: bool = False
    moving: Move | None = None
    landed: tuple[Landed, ...] = ()
    returned: tuple[Returned, ...] = ()
    present: tuple[str, ...] = ()
    checks: int = 0
    repeats: int = 0
    next_age: int = 0
    started_at: float = 0.0
    commands: tuple[str, ...] = ()
    closed: bool = False
    left_at: float | None = None
    problem: tuple[str, ...] = ()


class Store:
    """Reads and writes `file` under a lock: another process may add to the queue while it is worked on.

    `began` binds the store to the queue started then; a queue started after an abort is somebody else's.
    """

    def __init__(self, file: Path, began: float | None = None) -> None:
        self.file, self.began = file, began

    def read(self) -> Queue | None:
        try:
            queue = load(self.file, Queue, about=_ABOUT)
        except FileNotFoundError:
            return None
        if not _is_whole(queue):
            raise damaged(self.file, _ABOUT)
        return queue

    def require(self) -> Queue:
        queue = self.read()
        if queue is None or self.began not in (None, queue.started_at):
            raise AgentFarmError("The landing was aborted in the meantime", why="Nothing else from it lands.")
        return queue

    def update(self, change: Callable[[Queue], Queue]) -> Queue:
        with self._alone():
            queue = change(self.require())
            store(self.file, queue)
        return queue

    def put(self, make: Callable[[Queue | None], Queue]) -> Queue:
        """Store a new queue, or the existing one with more in it."""
        with self._alone():
            queue = make(self.read())
            store(self.file, queue)
        return queue

    def remove(self) -> None:
        with self._alone():
            self.file.unlink(missing_ok=True)

    def _alone(self) -> AbstractContextManager[int]:
        return file_lock(self.file.with_suffix(".lock"))


def _is_whole(queue: Queue) -> bool:
    """Whether its parts agree: every id that is named has an entry."""
    held, moving = queue.line.held_ids(), queue.moving.ids if queue.moving else ()
    known = {id for id, entry in queue.entries.items() if id == entry.id}
    return {*held, *queue.line.ids(), *moving} <= known and len(queue.passed) == len(queue.line.held)


def at_new_head(queue: Queue, head: str, touched: tuple[str, ...]) -> Queue:
    """The queue after somebody else's commits moved the target."""
    line = with_moved_target(queue.line, touched)
    return structs.replace(queue, head=head, line=line, passed=(), sifted=False)


def under_commands(queue: Queue, commands: tuple[str, ...]) -> Queue:
    """The queue under other checks, which nothing has passed yet."""
    if commands == queue.commands:
        return queue
    return structs.replace(at_new_head(queue, queue.head, ()), commands=commands)


def after_move(queue: Queue, *, landed: bool) -> Queue:
    """The queue after the move that was begun was made, or turned out never to have been."""
    move = queue.moving
    assert move is not None
    queue = structs.replace(queue, moving=None)
    if not landed:
        return queue
    groups = len(queue.line.held)
    if not set(move.ids) <= set(queue.line.held_ids()):
        # The checks have changed, so it waits again, and will be found to have landed already.
        return structs.replace(queue, head=move.after, sifted=False)
    line = with_landed(queue.line, move.ids)
    gone = groups - len(line.held)
    tree = queue.passed[gone - 1]
    return structs.replace(
        queue,
        head=move.after,
        line=line,
        passed=queue.passed[gone:],
        sifted=False,
        landed=(*queue.landed, *(Landed(id, move.after, tree) for id in move.ids)),
    )


def returned(queue: Queue, one: Returned) -> Queue:
    """The queue without it, and with it among the returned."""
    queue = _without(queue, one.id)
    return structs.replace(queue, returned=(*queue.returned, one))


def _without(queue: Queue, id: str) -> Queue:
    """If it was held, everything held waits again, because no tree without it has passed."""
    line = queue.line
    passed = queue.passed
    if id in line.held_ids():
        line, passed = structs.replace(with_moved_target(line, ()), proven=line.proven), ()
    return structs.replace(queue, line=without(line, id), passed=passed)


def with_newer(queue: Queue, entry: Entry, risk: float, clashes: tuple[str, ...]) -> Queue:
    """Replace the commit of one in the line, which keeps its place; nothing is known about it yet."""
    line = queue.line
    known = [*line.waiting, *(one for group in line.held for one in group)]
    place = next(one for one in known if one.id == entry.id)
    queue = _without(queue, entry.id)
    waiting = (*queue.line.waiting, structs.replace(place, risk=risk, clashes=clashes))
    return structs.replace(
        queue,
        line=structs.replace(queue.line, waiting=tuple(sorted(waiting, key=lambda one: one.age))),
        entries={**queue.entries, entry.id: entry},
        sifted=False,
    )


def withdrawn(queue: Queue, id: str) -> Queue:
    """The queue without one that whoever queued it took out again."""
    landed = any(one.id == id for one in queue.landed)
    if landed or (queue.moving and id in queue.moving.ids):
        what = f"{id} {'has landed' if landed else 'is landing at this moment'}"
        raise AgentFarmError(what, why=f"Work that is on {queue.into} stays there.")
    return _without(queue, id)


def closed(queue: Queue) -> Queue:
    """The queue closed, unless somebody was added at the last moment."""
    waits = queue.line.waiting or any(one.told is None for one in queue.returned)
    return queue if waits else structs.replace(queue, closed=True)


def being_told(queue: Queue, id: str, at: float) -> Queue:
    return _of_untold(queue, id, lambda one: structs.replace(one, sent_at=at))


def told(queue: Queue, id: str, outcome: str) -> Queue:
    return _of_untold(queue, id, lambda one: structs.replace(one, told=outcome))


def _of_untold(queue: Queue, id: str, change: Callable[[Returned], Returned]) -> Queue:
    some = (change(one) if one.id == id and one.told is None else one for one in queue.returned)
    return structs.replace(queue, returned=tuple(some))


def found_present(queue: Queue, id: str) -> Queue:
    return structs.replace(queue, line=without(queue.line, id), present=(*queue.present, id))

"""The landing queue on disk: one small file, written whole at each step, so that a killed run can be
continued.
"""

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
    Line,
    with_landed,
    with_moved_target,
    without,
)

_ABOUT = "It only names what waits to land. No work is lost with it: the branches exist."


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One branch as it was put into the queue: later commits of its builder are another landing.

    `made_at` tells the builder from another one that has its id by now.
    """

    id: str
    tip: ObjectName
    name: str
    subject: str
    trailer: str
    made_at: str


class Move(Struct, frozen=True, forbid_unknown_fields=True):
    """The target is about to go from `before` to `after`, with `ids`, whose tree has passed."""

    before: ObjectName
    after: ObjectName
    ids: tuple[str, ...]


class Landed(Struct, frozen=True, forbid_unknown_fields=True):
    """`commit` is what the target was moved to, `tree` what the check passed on."""

    id: str
    commit: ObjectName
    tree: ObjectName


class Returned(Struct, frozen=True, forbid_unknown_fields=True):
    """What did not land, and goes back to its builder. `told` is how the message was delivered.

    `sent_at` is when somebody began to send it, who may have been killed before that was known.
    """

    id: str
    kind: Literal["conflict", "red", "refused"]
    what: str
    evidence: tuple[str, ...] = ()
    log: str | None = None
    told: str | None = None
    sent_at: float | None = None


class Queue(Struct, frozen=True, forbid_unknown_fields=True):
    """What `line` says holds of the branch `into` at the commit `head`.

    `checkout` is a linked worktree of the person's own, None for the main checkout.

    `passed` are the trees of what `line` holds, group by group. `sifted`: who waits was merged with `head`
    alone, to see conflicts. `present` are those whose work the target had already. `closed`: it was worked
    off, and whoever comes now begins another one. `commands` are the checks that `passed` is said of.
    `left_at`: when it was left to another process, which has not begun yet. `problem` is why it stopped.
    """

    into: str
    checkout: str | None
    strategy: Strategy
    head: ObjectName
    line: Line
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
    """`file` under a lock: another process may add to the queue while it is worked on.

    `began` binds it to the queue that began then. One that was put there after an abort is somebody else's.
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
        """A new queue, or more in the one that is there."""
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
    """What one part of it names, the others know."""
    held, moving = queue.line.held_ids(), queue.moving.ids if queue.moving else ()
    known = {id for id, entry in queue.entries.items() if id == entry.id}
    return {*held, *queue.line.ids(), *moving} <= known and len(queue.passed) == len(queue.line.held)


def at_new_head(queue: Queue, head: str, touched: tuple[str, ...]) -> Queue:
    """Somebody else's commits are on the target."""
    line = with_moved_target(queue.line, touched)
    return structs.replace(queue, head=head, line=line, passed=(), sifted=False)


def under_commands(queue: Queue, commands: tuple[str, ...]) -> Queue:
    """The checks are others now: nothing has passed them yet."""
    if commands == queue.commands:
        return queue
    return structs.replace(at_new_head(queue, queue.head, ()), commands=commands)


def after_move(queue: Queue, *, landed: bool) -> Queue:
    """The move that was begun has been made, or never was."""
    move = queue.moving
    assert move is not None
    queue = structs.replace(queue, moving=None)
    if not landed:
        return queue
    groups = len(queue.line.held)
    if not set(move.ids) <= set(queue.line.held_ids()):
        # Other checks hold by now, so that it waits again: it is found there as landed already.
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
    """It is no longer waiting."""
    queue = _without(queue, one.id)
    return structs.replace(queue, returned=(*queue.returned, one))


def _without(queue: Queue, id: str) -> Queue:
    """If it was held, what else was held waits again: no tree without it has passed."""
    line = queue.line
    passed = queue.passed
    if id in line.held_ids():
        line, passed = structs.replace(with_moved_target(line, ()), proven=line.proven), ()
    return structs.replace(queue, line=without(line, id), passed=passed)


def with_newer(queue: Queue, entry: Entry, risk: float, clashes: tuple[str, ...]) -> Queue:
    """Another commit of one that is in the line, at the same place of it; nothing is known of it yet."""
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
    """Whoever put it in wants it out again."""
    landed = any(one.id == id for one in queue.landed)
    if landed or (queue.moving and id in queue.moving.ids):
        what = f"{id} {'has landed' if landed else 'is landing at this moment'}"
        raise AgentFarmError(what, why=f"Work that is on {queue.into} stays there.")
    return _without(queue, id)


def closed(queue: Queue) -> Queue:
    """Unless somebody was added at the last moment."""
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

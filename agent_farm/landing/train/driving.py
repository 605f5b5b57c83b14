"""Works off the queue: carries out what `line.py` decides in a world of commits, checks and builders.

Every step is recorded before the next. A move of the target is recorded before it is made; after a kill,
`Queue.moving` says what to look for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct, structs

from agent_farm.errors import AgentFarmError
from agent_farm.landing.train.ahead import checks_ahead
from agent_farm.landing.train.landing_journal import (
    Move,
    Queue,
    Returned,
    after_move,
    at_new_head,
    being_told,
    closed,
    found_present,
    returned,
    told,
)
from agent_farm.landing.train.line import (
    Blame,
    Check,
    Done,
    Land,
    next_step,
    with_clash,
    with_green,
    with_red,
)


class Composed(Struct, frozen=True):
    """A commit of the target with some branches merged onto it, and its tree."""

    commit: str
    tree: str


class Clash(Struct, frozen=True):
    """`id` cannot be merged onto what comes before it."""

    id: str
    files: tuple[str, ...] = ()


class TreeToCheck(Struct, frozen=True):
    """A tree to check; `again` means that what is known about it is not enough."""

    at: Composed
    again: bool


class World(Protocol):
    """What the queue needs of git, checks and builders. The process may be killed at any moment."""

    def head(self) -> str:
        """The commit of the target; raises if nothing can land on it at present."""

    def sift(self, queue: Queue) -> Mapping[str, Returned | None]:
        """Those that cannot be merged onto the target even alone, and why; None if it has their work."""

    def compose(self, queue: Queue, ids: Sequence[str]) -> Composed | Clash | Returned:
        """What would land; or which branch prevents that."""

    def judge(self, asked: Sequence[TreeToCheck]) -> bool:
        """Whether the first passes; the others are worth checking at the same time."""

    def blame(self, queue: Queue, id: str) -> Returned:
        """Give the builder up, with what its last check said."""

    def seal(self, queue: Queue, ids: Sequence[str], tree: str) -> str | Returned:
        """The last of the commits that land, with exactly this tree."""

    def advance(self, queue: Queue, move: Move) -> bool:
        """Move the target; False if it was no longer where the move begins."""

    def has_landed(self, queue: Queue, move: Move) -> bool:
        """Whether an interrupted move was made; settles what it left half done."""

    def touched(self, queue: Queue, head: str) -> tuple[str, ...]:
        """The builders whose files were touched on the target's way to `head`."""

    def give_back(self, queue: Queue, one: Returned) -> str:
        """Tell its builder; returns how that went. `sent_at` is set if an earlier attempt was killed."""


class Book(Protocol):
    """Where the queue is recorded: `landing_journal.Store`, or memory in simulations."""

    def require(self) -> Queue: ...

    def update(self, change: Callable[[Queue], Queue]) -> Queue: ...


class TargetIsRed(AgentFarmError):
    """The target branch does not pass its own check."""

    code = "target-red"


class GroupChecked(Struct, frozen=True):
    group: tuple[str, ...]
    again: bool
    green: bool


class Came(Struct, frozen=True):
    """These are on the target now, which is at `commit`."""

    ids: tuple[str, ...]
    commit: str


class Moved(Struct, frozen=True):
    """Somebody else moved the target."""

    head: str


class Present(Struct, frozen=True):
    id: str


Event = GroupChecked | Came | Returned | Moved | Present | Check | Queue


def drive(world: World, book: Book, width: int = 1) -> Iterator[Event]:
    """Runs until the queue is empty; yields each event once it is recorded, and last the closed queue."""
    while True:
        queue = book.require()
        if queue.moving is not None:
            yield from _settle(world, book, queue)
            continue
        head = world.head()
        if head != queue.head:
            book.update(partial(at_new_head, head=head, touched=world.touched(queue, head)))
            yield Moved(head)
            continue
        untold = next((one for one in queue.returned if one.told is None), None)
        if untold is not None:
            if untold.sent_at is None:
                book.update(partial(being_told, id=untold.id, at=time.time()))
            outcome = world.give_back(queue, untold)
            book.update(partial(told, id=untold.id, outcome=outcome))
            yield structs.replace(untold, told=outcome)
            continue
        if not queue.sifted:
            yield from _sift(world, book, queue)
            continue
        step = next_step(queue.line)
        if isinstance(step, Done):
            queue = book.update(closed)
            if queue.closed:
                yield queue
                return
            continue
        if isinstance(step, Land):
            yield from _land(world, book, queue, step)
        elif isinstance(step, Check):
            yield from _check(world, book, queue, step, width)
        elif isinstance(step, Blame):
            _take_out(book, queue, world.blame(queue, step.id))
        else:
            raise TargetIsRed(
                f"The check fails on {queue.into} itself, at {queue.head[:12]}",
                why="So no builder's work can be blamed, and nothing can land. Fix the branch first.",
                hint="af land --continue",
            )


def _sift(world: World, book: Book, queue: Queue) -> Iterator[Event]:
    for id, found in world.sift(queue).items():
        if found is not None:
            _take_out(book, queue, found)
        elif _are_same(book.require(), queue, [id]):
            book.update(partial(found_present, id=id))
            yield Present(id)
    seen = queue.line.ids()

    def sifted(now: Queue) -> Queue:
        same = now.head == queue.head and set(now.line.ids()) <= set(seen) and _are_same(now, queue, seen)
        return structs.replace(now, sifted=same)

    book.update(sifted)


def _are_same(now: Queue, queue: Queue, ids: Iterable[str]) -> bool:
    """Whether none of them has been queued with another commit since `queue` was read."""
    return all(now.entries[id] == queue.entries[id] for id in ids)


def _take_out(book: Book, queue: Queue, one: Returned) -> None:
    """Record `one` as returned, unless it was withdrawn or queued with another commit in the meantime."""

    def out(now: Queue) -> Queue:
        waits = one.id in (*now.line.ids(), *now.line.held_ids())
        return returned(now, one) if waits and _are_same(now, queue, [one.id]) else now

    book.update(out)


def _check(world: World, book: Book, queue: Queue, step: Check, width: int) -> Iterator[Event]:
    asked: list[TreeToCheck] = []
    for ahead in checks_ahead(queue.line, width):
        made = world.compose(queue, ahead.content)
        if isinstance(made, Composed):
            asked.append(TreeToCheck(made, ahead.check.again))
        elif asked:
            continue  # it was only a check beside another one
        elif isinstance(made, Returned):
            _take_out(book, queue, made)
            return
        else:
            _note_clash(book, queue, made, ahead.content)
            return
    yield step
    green = world.judge(asked)
    tree = asked[0].at.tree

    def learned(now: Queue) -> Queue:
        held = queue.line.held_ids()
        same = now.head == queue.head and now.line.held_ids() == held and _are_same(now, queue, held)
        if not same or not set(step.group) <= set(now.line.ids()) or not _are_same(now, queue, step.group):
            return now  # the result is about another target or commit, or about one that was withdrawn
        now = structs.replace(now, checks=now.checks + (not step.again), repeats=now.repeats + step.again)
        line = (with_green if green else with_red)(now.line, step.group)
        passed = (*now.passed, tree) if green and step.group else now.passed
        return structs.replace(now, line=line, passed=passed)

    book.update(learned)
    yield GroupChecked(step.group, step.again, green)


def _note_clash(book: Book, queue: Queue, clash: Clash, content: Sequence[str]) -> None:
    before = content[: content.index(clash.id)]
    if not before:
        what = f"It conflicts with {queue.into}"
        _take_out(book, queue, Returned(clash.id, "conflict", what, clash.files))
        return

    def clashing(now: Queue) -> Queue:
        same = _are_same(now, queue, (clash.id, *before))
        return structs.replace(now, line=with_clash(now.line, clash.id, before)) if same else now

    book.update(clashing)


def _land(world: World, book: Book, queue: Queue, step: Land) -> Iterator[Event]:
    groups = 0
    while sum(len(group) for group in queue.line.held[:groups]) < len(step.ids):
        groups += 1
    sealed = world.seal(queue, step.ids, queue.passed[groups - 1])
    if isinstance(sealed, Returned):
        _take_out(book, queue, sealed)
        return
    move = Move(queue.head, sealed, step.ids)

    def begun(now: Queue) -> Queue:
        """Unless one of them was withdrawn or replaced at the last moment."""
        same = set(move.ids) <= set(now.line.held_ids()) and _are_same(now, queue, move.ids)
        return structs.replace(now, moving=move) if same else now

    if book.update(begun).moving is None:
        return
    landed = world.advance(queue, move)
    try:
        book.update(partial(after_move, landed=landed))
    except AgentFarmError:  # the queue was emptied meanwhile; the move may still have been made
        if landed:
            yield Came(move.ids, move.after)
        raise
    if landed:
        yield Came(move.ids, move.after)


def _settle(world: World, book: Book, queue: Queue) -> Iterator[Event]:
    assert queue.moving is not None
    landed = world.has_landed(queue, queue.moving)
    book.update(partial(after_move, landed=landed))
    if landed:
        yield Came(queue.moving.ids, queue.moving.after)

"""Places a lost builder again, from its last checkpoint, under the same id and branch.

The new place is recorded before anything is sent: from then on the lost builder has a lower term, and is
ended when its machine answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import structs, to_builtins

from agent_farm.builders.record import BuilderRecord
from agent_farm.consent import Consent
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, NotFound, Unreachable, UsageError, as_farm_error
from agent_farm.farm.farm import Farm
from agent_farm.farm.placing_again import place_again
from agent_farm.fleet.book import Book, Left, Placed, edit_book, next_term, read_book
from agent_farm.fleet.calling import call, release_slot
from agent_farm.git.checkpoints import keep_newer, kept_ref
from agent_farm.git.divergence import commit_at
from agent_farm.operations.fleet.ask_machines import ask_machine, keys_of, with_ids
from agent_farm.operations.fleet.checkpoint import bring_home
from agent_farm.operations.fleet.held_slots import hold_slot, names_lock, require_room
from agent_farm.operations.fleet.making import being_made
from agent_farm.operations.fleet.placings import Placings
from agent_farm.operations.fleet.refresh import refresh
from agent_farm.operations.fleet.rows_elsewhere import answer_of, is_lost, row_of, shown_rows
from agent_farm.operations.fleet.spawn_elsewhere import LOCAL
from agent_farm.operations.fleet.work_elsewhere import base_there, most_fetched, ref_there
from agent_farm.operations.for_home.copied_builders import (
    Again,
    PlacedAgain,
    Withdraw,
    Withdrawn,
    start_placed,
)
from agent_farm.operations.operation import Context, Failure
from agent_farm.operations.recover import Back, LostBuilder, Recover, Recovered, recover
from agent_farm.settings_keys import PERMISSIONS


def recover_elsewhere(context: Context, book: Book, request: Recover, ids: Sequence[str]) -> Iterator[Any]:
    for id in ids:
        try:
            yield from _recover(context, book, request, id)
        except (AgentFarmError, OSError) as problem:
            if len(request.ids) == 1:
                raise
            yield Failure.of(id, as_farm_error(problem))


def _recover(context: Context, book: Book, request: Recover, id: str) -> Iterator[Any]:
    book = refresh(context.farm, {book.builder(id).host})
    placed = book.builder(id)
    if request.on is None or (request.on == placed.host and not placed.gone):
        asked = structs.replace(with_ids(request, [id]), on=None)
        found: Recovered = ask_machine(recover, context, book, asked, placed.host, [id])
        yield from (Back(one, one in found.interrupted) for one in found.resumed)
        yield from found.would_resume
        yield from found.failed
        return
    (shown,) = shown_rows(context.farm, book, [id])
    placed = require_lost(context.farm, book, id)
    if request.on != LOCAL:
        require_room(book, request.on, silent(book))
    if request.dry_run:
        status = shown.status
        yield LostBuilder(id, shown.record.runtime, shown.record.title, status.cut_short)
        return
    yield place(context, id, placed, request.on, say=request.say, yes=request.yes)


def silent(book: Book) -> set[str]:
    """Machines that get no builder unless they are named."""
    return {host for host, machine in book.machines.items() if machine.problem}


def require_lost(farm: Farm, book: Book, id: str) -> Placed:
    placed = book.builder(id)
    machine = book.machine(placed.host)
    if not placed.gone and not is_lost(farm, machine):
        if machine.problem is None:
            raise UsageError(f"{id} is on {placed.host}, which answers", hint=f"af resume {id}")
        limit = farm.settings.number("fleet.lost_seconds")
        raise AgentFarmError(
            f"{id} is not lost yet: {machine.problem}",
            why=f"A machine has lost its builders if it does not answer for {limit} s (fleet.lost_seconds).",
            hint=f"af status {id}",
        )
    if placed.checkpoint is None or placed.row is None or commit_at(farm.repository, kept_ref(id)) is None:
        raise NotFound(
            f"Nothing of {id} has come home",
            why=f"Its work is on the disk of {placed.host}.",
            hint=f"af status {id}",
        )
    return placed


def place(
    context: Context,
    id: str,
    placed: Placed,
    on: str,
    *,
    say: str | None,
    yes: Consent,
    placings: Placings | None = None,
) -> Back:
    """`placed` is how it was when seen to be lost; refused if somebody else has placed it since."""
    placings = placings or Placings(context)
    lock = file_lock(context.farm.paths.locks / f"fleet-place-{id}.lock", wait=0)
    with placings.at_work(), lock:
        now = read_book(context.farm).builders.get(id)
        if now is None or now.term != placed.term:
            raise AgentFarmError(f"{id} has been placed elsewhere in the meantime", hint=f"af status {id}")
        if on == LOCAL:
            answer = _place_here(context, id, placed, say, yes)
        else:
            answer = _place_there(context, placings, id, placed, on, say, yes)
    if answer.problem:
        context.tell(f"{id} is there, but its runtime was not started: {answer.problem}")
    elif not answer.started:
        context.tell(
            f"{id} is there, but stopped, because it had ended or its conversation is missing; af resume"
            f" {id} starts it"
        )
    return Back(id, answer.builder.status.cut_short and say is None)


def _place_here(context: Context, id: str, placed: Placed, say: str | None, yes: Consent) -> PlacedAgain:
    farm, why = context.farm, f"placed here from its checkpoint of {placed.host}"
    _keep_newer(context, id, placed)
    told = structs.replace(_as_asked(farm, placed, placed.base), issue=placed.issue, source=placed.source)
    record, starts = place_again(farm, told, kept_ref(id), most_bytes=most_fetched(farm), why=why)
    term = next_term(farm)
    with edit_book(farm) as held:
        book = held[0].without_builder(id)
        held[0] = structs.replace(book, left=(*_left(book, id, placed.host), Left(id, placed.host, term)))
    release_slot(held[0], id, placed)
    return start_placed(context, record.id, say, starts=starts, yes=yes)


def _place_there(
    context: Context, placings: Placings, id: str, placed: Placed, on: str, say: str | None, yes: Consent
) -> PlacedAgain:
    farm = context.farm
    with _moved(farm, id, placed, on) as now:
        kept, on = placed.checkpoint, now.host
        assert kept
        _keep_newer(context, id, placed)
        base, ref = base_there(farm, placed.base), ref_there(id)
        record = _as_asked(farm, placed, f"home/{placed.base}" if base else placed.base_commit)
        asked = Again(to_builtins(record), ref, now.term, most_fetched(farm), say, yes)
        document = placings.place(
            on,
            "place_again",
            to_builtins(asked),
            refs={ref: kept.commit, f"{ref}@base": placed.base_commit, **base},
            environment=keys_of(context, placed.runtime),
        )
        answer = answer_of(PlacedAgain, document, on)
        row = row_of(id, now, answer.builder)
    with edit_book(farm) as held:
        if id in held[0].builders:  # otherwise it was pruned in the meantime
            known = structs.replace(held[0].builders[id], is_known=True, gone=False, row=row)
            held[0] = held[0].with_builder(id, known)
    return answer


def _as_asked(farm: Farm, placed: Placed, base: str) -> BuilderRecord:
    """The record as its machine reported it, but no wider in what it may do or what follows from its work."""
    assert placed.row
    told = placed.row.record
    most = placed.permissions or farm.settings.text("spawn.permissions") or "edit"
    return structs.replace(
        told,
        branch=placed.branch,
        base=base,
        runtime=placed.runtime or told.runtime,
        permissions=min(told.permissions, most, key=_rank),
        unlocked=(),
        ephemeral=False,
        issue=None,
        source=None,
    )


def _rank(permissions: str) -> int:
    return PERMISSIONS.index(permissions) if permissions in PERMISSIONS else -1


def _keep_newer(context: Context, id: str, placed: Placed) -> None:
    for ref in keep_newer(context.farm.repository, id, placed.branch):
        context.tell(f"{ref} has commits of {id} that are in no checkpoint; it continues without them")


@contextmanager
def _moved(farm: Farm, id: str, placed: Placed, on: str) -> Iterator[Placed]:
    """Record it as being there, with a slot. A refusal by the machine undoes this; a lost connection does
    not. Until it is known to be there, it keeps the slot where it was.

    Hundreds may wait here for their machine: none of them keeps the book of its time.
    """
    with being_made(farm, id):
        own = tuple(one for one in read_book(farm).left if one.id == id)
        waited_for = {one.host for one in own if one.commit is None}
        if on in waited_for:
            _fetch_earlier(farm, id, on)
        with names_lock(farm):
            now = _note_moved(farm, id, placed, on, silent(read_book(farm)) | waited_for)
        try:
            yield now
        except Unreachable:
            raise
        except AgentFarmError:
            with edit_book(farm) as held:
                left = (*(one for one in held[0].left if one.id != id), *own)
                held[0] = structs.replace(held[0].with_builder(id, placed), left=left)
            release_slot(held[0], id, now)
            raise
        release_slot(read_book(farm), id, placed)


def _note_moved(farm: Farm, id: str, placed: Placed, on: str, avoided: Collection[str]) -> Placed:
    """Called under `names_lock`."""
    term = next_term(farm)
    if placed.host == on:  # the machine may have room for only one of it
        release_slot(read_book(farm), id, placed)
    on = hold_slot(farm, id, term, on, avoided)
    with edit_book(farm) as held:
        book = held[0]
        now = structs.replace(placed, host=on, term=term, is_known=False, gone=False, problem=None)
        left = tuple(one for one in _left(book, id, placed.host) if (one.id, one.host) != (id, on))
        moved = left if placed.host == on else (*left, Left(id, placed.host, term))
        held[0] = structs.replace(book.with_builder(id, now), left=moved)
    return now


def _fetch_earlier(farm: Farm, id: str, on: str) -> None:
    """Fetch its earlier work from there, which makes room; if that is gone, there is nothing to fetch."""
    bring_home(farm, refresh(farm, {on}), on)
    book = read_book(farm)
    terms = [one.term for one in book.left if (one.id, one.host) == (id, on) and one.commit is None]
    if terms and _is_still_on(book, on, id, terms[-1]):
        raise AgentFarmError(
            f"The work that {id} had on {on} before has not come home",
            why="It would only be in the trash there.",
            hint="af fleet checkpoint",
        )


def _is_still_on(book: Book, on: str, id: str, term: int) -> bool:
    asked = Withdraw(id, term, held=term)
    return answer_of(Withdrawn, call(book, on, "withdraw", to_builtins(asked)), on).there


def _left(book: Book, id: str, host: str) -> tuple[Left, ...]:
    return tuple(one for one in book.left if (one.id, one.host) != (id, host) or one.commit is not None)

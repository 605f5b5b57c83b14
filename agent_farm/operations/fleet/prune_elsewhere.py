"""Removes builders on other machines, by the evidence there, and restores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import structs, to_builtins

from agent_farm.errors import AgentFarmError, NotFound, Unreachable, as_farm_error
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Placed, edit_book, next_term, read_book
from agent_farm.fleet.calling import call, release_slot
from agent_farm.git.checkpoints import drop, kept_ref
from agent_farm.git.other_machine import drop_branch, fetched_commit
from agent_farm.operations.fleet.ask_machines import ask_machine
from agent_farm.operations.fleet.costs_elsewhere import used_by
from agent_farm.operations.fleet.held_slots import hold_slot, names_lock
from agent_farm.operations.fleet.making import being_made
from agent_farm.operations.fleet.rows_elsewhere import answer_of, row_of
from agent_farm.operations.fleet.work_elsewhere import (
    fetch_work,
    make_branch_again,
    push_bases,
    take_what_came,
)
from agent_farm.operations.for_home.copied_builders import Withdraw, Withdrawn
from agent_farm.operations.operation import Context, Failure
from agent_farm.operations.prune import Prune, Pruned, Removal, WouldRemove
from agent_farm.operations.prune import prune as prune_there
from agent_farm.operations.remove_decided import RemoveDecided
from agent_farm.operations.restore import Restored


def prune(
    context: Context, book: Book, request: Prune, ids: Sequence[str], *, alone: bool = True
) -> Iterator[Any]:
    """Before anything is removed there, its commits are fetched, and the bases are pushed to the machine."""
    for id in ids:
        try:
            yield _prune(context, book, structs.replace(request, ids=(id,)), id)
        except (AgentFarmError, OSError) as problem:
            if alone and len(request.ids) == 1:
                raise
            yield Failure.of(id, as_farm_error(problem))


def _prune(context: Context, book: Book, request: Prune, id: str) -> Removal | WouldRemove | Failure:
    host = book.builders[id].host

    def ask() -> Pruned:
        found: Pruned = ask_machine(prune_there, context, book, request, host, [id])
        return found

    return _removed(context, book, id, ask, dry_run=request.dry_run)


def remove_decided_there(context: Context, asked: RemoveDecided) -> Removal | WouldRemove:
    book = read_book(context.farm)
    host = book.builders[asked.id].host

    def ask() -> Pruned:
        document = call(book, host, "remove_decided", to_builtins(asked), tell=context.tell)
        return answer_of(Pruned, document, host)

    found = _removed(context, book, asked.id, ask, dry_run=asked.dry_run)
    assert not isinstance(found, Failure)  # evidence against it is raised there
    return found


def _removed(
    context: Context, book: Book, id: str, ask: Callable[[], Pruned], *, dry_run: bool
) -> Removal | WouldRemove | Failure:
    farm, placed = context.farm, book.builders[id]
    if dry_run:
        if _has_none(book, id):
            return WouldRemove(id=id)
    elif not (withdrawn := ask_about(farm, id)).there:
        return take_off(context, id, withdrawn)
    fetch_work(farm, book, id)
    pushed = push_bases(farm, book, placed.host)
    with edit_book(farm) as held:
        machine = structs.replace(held[0].machine(placed.host), pushed=pushed)
        held[0] = held[0].with_machine(placed.host, machine)
    found = ask()
    if found.refused:
        return found.refused[0]
    if found.would_remove:
        return WouldRemove(id=id)
    removal = next((one for one in found.removed if one.id == id), None)
    if removal is None:
        raise AgentFarmError(f"{placed.host} has not said what became of {id}", hint=f"af status {id}")
    return structs.replace(removal, branch=_take_down(context, id, removal))


def ask_about(farm: Farm, id: str) -> Withdrawn:
    """Ask its machine now, whatever was seen before, whether it has the builder. One that is still being made
    there is given up."""
    term, book = next_term(farm), read_book(farm)
    placed = book.builder(id)
    asked = Withdraw(id, term, held=placed.term)
    return answer_of(Withdrawn, call(book, placed.host, "withdraw", to_builtins(asked)), placed.host)


def _has_none(book: Book, id: str) -> bool:
    try:
        call(book, book.builder(id).host, "path", {"id": id})
    except NotFound:
        return True
    return False


def take_off(context: Context, id: str, found: Withdrawn) -> Removal:
    """Take a builder that its machine does not have off the list. If it was removed there, it can be
    restored; else what was fetched of it stays as a branch."""
    if found.removal is not None and found.removal.id == id:
        return structs.replace(found.removal, branch=_take_down(context, id, found.removal))
    if kept := take_what_came(context.farm, id, read_book(context.farm).builder(id)):
        context.tell(kept)
    with edit_book(context.farm) as held:
        placed = held[0].builder(id)
        held[0] = held[0].without_builder(id)
    release_slot(held[0], id, placed)
    goes = placed.new_branch and drop_branch(context.farm.repository, placed.branch, placed.base_commit)
    if not goes:
        context.tell(f"{placed.branch} stays: nothing else is left of {id}")
    return Removal(id, 0, placed.branch if goes else None, None, (), (), "")


def _take_down(context: Context, id: str, removal: Removal) -> str | None:
    """Take it off the list, as the last step. Its branch here is deleted if it is where it was there, and so
    is its checkpoint, since the machine's trash has everything.
    """
    farm, book = context.farm, read_book(context.farm)
    placed = book.builder(id)
    tip = fetched_commit(farm.repository, id)  # this ref stays, so nothing that was fetched is lost
    goes = bool(placed.new_branch and tip and drop_branch(farm.repository, placed.branch, tip))
    has_landed = tip not in (None, placed.base_commit) and removal.salvage is None
    used = used_by(farm, book, id, landed=has_landed)
    drop(farm.repository, kept_ref(id))
    with edit_book(farm) as held:
        placed = structs.replace(held[0].builder(id), row=None, checkpoint=None, used=used)
        removed = {**held[0].removed, id: placed}
        held[0] = structs.replace(held[0].without_builder(id), removed=removed)
    release_slot(held[0], id, placed)
    return placed.branch if goes else None


def restore(context: Context, book: Book, request: Any, ids: Sequence[str]) -> Iterator[Restored]:
    """Recorded as coming back before its machine is asked: the next look then finds out what happened."""
    (id,) = ids
    farm, placed = context.farm, book.removed[id]
    asked = {"id": id} if request.epoch is None else {"id": id, "epoch": request.epoch}
    with being_made(farm, id):
        with names_lock(farm):
            hold_slot(farm, id, placed.term, placed.host)
            _store_coming(farm, id)
        try:
            found = answer_of(Restored, call(book, placed.host, "restore", asked), placed.host)
            row = row_of(id, placed, found.builder)
        except BaseException as error:
            if not _may_come(error):
                _take_back(farm, id, placed)
            raise
        make_branch_again(farm, id, placed)
        with edit_book(farm) as held:
            back = structs.replace(placed, row=row, is_known=True, gone=False, used=None)
            held[0] = held[0].without_removed(id).with_builder(id, back)
    yield Restored(structs.replace(found.builder, host=placed.host))


def _store_coming(farm: Farm, id: str) -> None:
    with edit_book(farm) as held:
        coming = structs.replace(held[0].removed[id], is_known=False, gone=False, used=None)
        held[0] = held[0].with_builder(id, coming)


def _may_come(error: BaseException) -> bool:
    return error.began if isinstance(error, Unreachable) else isinstance(error, KeyboardInterrupt)


def _take_back(farm: Farm, id: str, placed: Placed) -> None:
    """It did not come back: it can be restored, as before."""
    with edit_book(farm) as held:
        held[0] = held[0].without_builder(id)
    release_slot(held[0], id, placed)

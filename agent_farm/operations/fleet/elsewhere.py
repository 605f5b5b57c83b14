"""Runs a verb for builders on any machine: here by its own `run`, elsewhere as it declares."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from agent_farm.builders.ids import match_builder
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Records, Registry
from agent_farm.disk import make_directory
from agent_farm.errors import AgentFarmError, Unreachable, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, read_book
from agent_farm.fleet.calling import by_hand
from agent_farm.git.other_machine import fetched_commit
from agent_farm.operations.fleet.ask_machines import ask_each, ask_machine, with_ids
from agent_farm.operations.fleet.refresh import fetch_all, fetch_if_reachable, refresh, refresh_quickly
from agent_farm.operations.fleet.rows_elsewhere import record_here, shown_rows
from agent_farm.operations.fleet.work_elsewhere import take_checkpoint
from agent_farm.operations.operation import Context, Operation, only

_OVER_ALL = ("removed", "stop", "prune")
_READY = ("idle", "exited", "failed", "stopped")

Verb = Operation[Any, Any]


def run_anywhere(verb: Verb, context: Context, request: Any) -> Iterator[Any]:
    """Yields what `run` yields. The caller has checked that the farm has a fleet."""
    book = read_book(context.farm)
    if verb.name in _OVER_ALL:  # loaded only for the few verbs that need it
        from agent_farm.operations.fleet.over_all import over_all

        if (over := over_all(verb, request)) is not None:
            return over(verb, context, request, book)
    if any(id.startswith("@") for id in getattr(request, "ids", ())):
        from agent_farm.operations.fleet.over_all import with_words

        request = with_words(context, request)
    if verb.name == "status":
        return _status(verb, context, request, book)
    here, there = _whose(context, book, request, removed=verb.name == "restore")
    if not there:
        return (
            _at_home(verb, context, request, ()) if verb.elsewhere == "home" else verb.run(context, request)
        )
    if context.caller != "architect" or verb.elsewhere == "refused":
        raise refused(book, verb.name, there[0])
    if verb.elsewhere == "home":
        return _at_home(verb, context, with_ids(request, [*here, *there]), there)
    if verb.elsewhere == "fetched":
        return verb.run(with_view(context, book, there), with_ids(request, [*here, *there]))
    if verb.name in ("prune", "restore"):
        from agent_farm.operations.fleet.prune_elsewhere import prune, restore

        act = prune if verb.name == "prune" else restore
        return _both(verb, context, request, here, act(context, book, request, there))
    if verb.name == "recover":
        from agent_farm.operations.fleet.recover_elsewhere import recover_elsewhere

        return _both(verb, context, request, here, recover_elsewhere(context, book, request, there))
    if verb.name == "diff":
        return _diff(verb, context, request, book, there[0])
    if verb.name == "sync":
        from agent_farm.operations.fleet.sync_elsewhere import sync

        return _both(verb, context, request, here, sync(verb, context, request, there))
    if verb.name == "wait":
        from agent_farm.operations.fleet.wait_elsewhere import wait_anywhere

        return wait_anywhere(verb, context, book, request, here, there)
    if here and verb.collect is only:
        raise UsageError(
            f"{verb.name} takes builders of one machine at a time",
            why=f"{there[0]} is on {book.builders[there[0]].host}, {here[0]} is not.",
        )
    return _both(verb, context, request, here, ask_each(verb, context, book, request, there))


def refused(book: Book, verb: str, id: str) -> AgentFarmError:
    host = book.builders[id].host
    words = verb.replace("_", "-")
    return UsageError(
        f"af {words} does not work for a builder on another machine, and {id} is on {host}",
        why="Run it there.",
        hint=by_hand(book.machine(host), words, id),
    )


def elsewhere_of(farm: Farm, id: str) -> tuple[Book, str, str] | None:
    """The book, the full id and the machine of a builder that is elsewhere; None if it is here or unknown."""
    if not farm.paths.fleet.exists():
        return None
    book = read_book(farm)
    found = _match(id, book.builders, farm.registry.ids(), whole=False)
    return (book, found, book.builders[found].host) if found else None


def host_of(context: Context, request: Any) -> str | None:
    """The machine that a request is about, of several the first; None for this one."""
    if not {"id", "ids"} & {*request.__struct_fields__}:
        return None
    book = read_book(context.farm)
    try:
        _, there = _whose(context, book, request, removed=False)
    except AgentFarmError:
        return None
    return book.builders[there[0]].host if there else None


def _whose(context: Context, book: Book, request: Any, *, removed: bool) -> tuple[list[str], list[str]]:
    """The ids in a request that are here, as given, and the full ids of those elsewhere, each once."""
    named = getattr(request, "ids", None)
    if named is None:
        named = (getattr(request, "id", None),)
    known = book.removed if removed else book.builders
    registered = context.farm.registry.ids()
    here, there = list[str](), list[str]()
    for id in named:
        found = _match(id, known, registered, whole=context.whole_ids or removed) if id else None
        if found:
            there.append(found)
        elif id:
            here.append(id)
    return here, list(dict.fromkeys(there))


def _match(id: str, elsewhere: Collection[str], here: Collection[str], *, whole: bool) -> str | None:
    if id in elsewhere:
        return id
    if whole or id in here or not any(known.startswith(id) for known in elsewhere):
        return None
    return match_builder(id, [*elsewhere, *here])


def _both(
    verb: Verb, context: Context, request: Any, here: Sequence[str], others: Iterator[Any]
) -> Iterator[Any]:
    if here:
        yield from verb.run(context, with_ids(request, here))
    yield from others


# verbs over all machines


def _status(verb: Verb, context: Context, request: Any, book: Book) -> Iterator[Any]:
    _, there = _whose(context, book, request, removed=False)
    here = [id for id in request.ids if _match(id, book.builders, (), whole=context.whole_ids) not in there]
    found: tuple[Any, ...] = ()
    if here or not request.ids:
        for part in verb.run(context, structs.replace(request, ids=tuple(here))):
            if isinstance(part, tuple):
                found = part
            else:
                yield part
    if there or not request.ids:
        hosts = {book.builders[id].host for id in there} if there else None
        if request.fresh:
            book = refresh(context.farm, hosts, fresh=True)
        else:
            book = refresh_quickly(context.farm, hosts)
        found += shown_rows(
            context.farm, book, [id for id in there if id in book.builders] if there else None
        )
    yield found


# verbs that run at home, on fetched work


def _diff(verb: Verb, context: Context, request: Any, book: Book, id: str) -> Iterator[Any]:
    """From its machine, with uncommitted changes; if that cannot be asked, from what was fetched last."""
    asked = with_ids(request, [id])
    try:
        yield ask_machine(verb, context, book, asked, book.builders[id].host, [id])
    except Unreachable as error:
        take_checkpoint(context.farm, id, book.builders[id])
        if fetched_commit(context.farm.repository, id) is None:
            raise
        context.tell(f"{id} as last fetched: {error.sentence}")
        yield from verb.run(with_view(context, book, [id]), asked)


def _at_home(verb: Verb, context: Context, request: Any, ids: Sequence[str]) -> Iterator[Any]:
    if ids or verb.name not in ("land", "conflicts", "review"):
        here = at_home(context, ids, quickly=verb.name.startswith("review"))
        if verb.name == "keep":  # those that are removed are not among its ids
            here = at_home(context, (), quickly=True)
    elif verb.name == "review":
        here = everybody_at_home(context, quickly=True)
    else:
        here = everybody_at_home(context, only=_READY if verb.name == "land" else None)
    yield from verb.run(here, request)


def at_home(context: Context, ids: Collection[str], *, quickly: bool) -> Context:
    """A context in which these builders are here, stopped, with their current work; without ids, all
    builders, with what was fetched last."""
    if not ids:
        book = read_book(context.farm)
        return with_view(context, book, book.builders)
    return with_view(context, fetch_if_reachable(context.farm, ids, context.tell, quickly=quickly), ids)


def everybody_at_home(
    context: Context, *, quickly: bool = False, only: Collection[str] | None = None
) -> Context:
    """`at_home` for all builders, or those in these states."""
    book = refresh_quickly(context.farm) if quickly else refresh(context.farm)
    rows = shown_rows(context.farm, book)
    ids = [one.record.id for one in rows if only is None or one.status.state in only]
    return with_view(context, book, fetch_all(context.farm, book, ids, context.tell))


def reviewed_here(context: Context, ids: Sequence[str]) -> Context:
    """For a review, which shows what it can get in about a second; without a fleet, `context` itself."""
    if not context.farm.paths.fleet.exists() or isinstance(context.farm.registry, RegistryWithFleet):
        return context
    if not ids:
        return everybody_at_home(context, quickly=True)
    there = [found for id in ids if (found := elsewhere_of(context.farm, id))]
    return at_home(context, [id for _, id, _ in there], quickly=True) if there else context


def with_view(context: Context, book: Book, ids: Collection[str]) -> Context:
    farm = context.farm
    known = {id: record_here(farm, id, book.builder(id)) for id in ids}
    for id in known:  # directories for what is kept here: proof, review, pull request
        make_directory(farm.run(id).directory)
    registry = RegistryWithFleet(farm.registry.paths, known)
    return structs.replace(context, place=structs.replace(farm, registry=registry))


class RegistryWithFleet(Registry, frozen=True):
    """A registry that also has builders elsewhere, as known here; they are never stored in it."""

    elsewhere: Mapping[str, BuilderRecord]

    def read(self) -> Records:
        records = super().read()
        records.update({id: one for id, one in self.elsewhere.items() if id not in records})
        return records

    def _store(self, records: Records) -> None:
        for id in self.elsewhere:
            records.pop(id, None)
        super()._store(records)

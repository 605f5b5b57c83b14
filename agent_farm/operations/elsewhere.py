"""A verb for builders on any machine: those here by its own `run`, those elsewhere as it declares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from agent_farm.builders.ids import match_builder
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Records, Registry
from agent_farm.errors import AgentFarmError, Unreachable, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, read_book
from agent_farm.fleet.calling import by_hand, call
from agent_farm.operations.fleet_asking import ask_each, ask_machine, fields_given, with_ids
from agent_farm.operations.fleet_look import answer_of, record_here, shown_rows
from agent_farm.operations.fleet_refresh import fetch_all, fetch_if_reachable, refresh, refresh_quickly
from agent_farm.operations.operation import Context, Operation, only

_READY = ("idle", "exited", "failed", "stopped")

Verb = Operation[Any, Any]


def run_anywhere(verb: Verb, context: Context, request: Any) -> Iterator[Any]:
    """What `run` yields. The caller has seen that the farm has a fleet."""
    book = read_book(context.farm)
    if verb.name in ("status", "removed"):
        return _OVER_ALL[verb.name](verb, context, request, book)
    here, there = _whose(context, book, request, removed=verb.name == "restore")
    if not there:
        return (
            _at_home(verb, context, request, ()) if verb.elsewhere == "home" else verb.run(context, request)
        )
    if context.caller != "architect" or verb.elsewhere == "refused":
        raise refused(book, verb.name, there[0])
    if verb.elsewhere == "home":
        return _at_home(verb, context, with_ids(request, [*here, *there]), there)
    if verb.name in ("prune", "restore"):
        from agent_farm.operations.fleet_removal import prune, restore

        act = prune if verb.name == "prune" else restore
        return _both(verb, context, request, here, act(context, book, request, there))
    if verb.name == "diff":
        return _diff(verb, context, request, book, there[0])
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
        f"af {words} is not for a builder on another machine, and {id} is on {host}",
        why="It can be done there by hand.",
        hint=by_hand(book.machine(host), words, id),
    )


def elsewhere_of(farm: Farm, id: str) -> tuple[Book, str, str] | None:
    """The book, the whole id and the machine of a builder that is not here."""
    if not farm.paths.fleet.exists():
        return None
    book = read_book(farm)
    found = _match(id, book.builders, farm.registry.ids(), whole=False)
    return (book, found, book.builders[found].host) if found else None


def host_of(context: Context, request: Any) -> str | None:
    """The machine that a request is about, the first one of several; None: this one."""
    if not {"id", "ids"} & {*request.__struct_fields__}:
        return None
    book = read_book(context.farm)
    try:
        _, there = _whose(context, book, request, removed=False)
    except AgentFarmError:
        return None
    return book.builders[there[0]].host if there else None


def _whose(context: Context, book: Book, request: Any, *, removed: bool) -> tuple[list[str], list[str]]:
    """The ids of a request as they are here, and the whole ids of those elsewhere, each once."""
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


def _removed(verb: Verb, context: Context, request: Any, book: Book) -> Iterator[Any]:
    from agent_farm.operations.restore import AllRemoved

    own: AllRemoved = verb.collect(list(verb.run(context, request)))
    found = list(own.removed)
    for host in sorted({placed.host for placed in book.removed.values()}):
        try:
            answer = answer_of(AllRemoved, call(book, host, "removed", fields_given(request)), host)
        except AgentFarmError as error:
            context.tell(f"Those removed on {host} are left out: {error.sentence}")
            continue
        found += [one for one in answer.removed if one.id in book.removed]
    yield AllRemoved(tuple(found))


_OVER_ALL: Mapping[str, Callable[[Verb, Context, Any, Book], Iterator[Any]]] = {
    "status": _status,
    "removed": _removed,
}


# what is done at home, with the work that was fetched


def _diff(verb: Verb, context: Context, request: Any, book: Book, id: str) -> Iterator[Any]:
    """As it is there, with what is not committed; where that cannot be asked, of what was fetched last."""
    asked = with_ids(request, [id])
    try:
        yield ask_machine(verb, context, book, asked, book.builders[id].host, [id])
    except Unreachable as error:
        context.tell(f"{id} as it was fetched last: {error.sentence}")
        yield from verb.run(_with_view(context, book, [id]), asked)


def _at_home(verb: Verb, context: Context, request: Any, ids: Sequence[str]) -> Iterator[Any]:
    if getattr(request, "prune", False) and ids:
        raise UsageError(
            "--prune does not go with a builder on another machine", hint=f"af prune --stop {ids[0]}"
        )
    if ids:
        book = fetch_if_reachable(context.farm, ids, context.tell)
        chosen: Collection[str] = ids
    else:
        book = read_book(context.farm)
        chosen = book.builders
        if verb.name in ("land", "conflicts"):
            book = refresh(context.farm)
            rows = shown_rows(context.farm, book)
            chosen = [one.record.id for one in rows if verb.name != "land" or one.status.state in _READY]
            chosen = fetch_all(context.farm, book, chosen, context.tell)
    yield from verb.run(_with_view(context, book, chosen), request)


def _with_view(context: Context, book: Book, ids: Collection[str]) -> Context:
    farm = context.farm
    known = {id: record_here(farm, id, book.builders[id]) for id in ids}
    registry = RegistryWithFleet(farm.registry.paths, known)
    return structs.replace(context, place=structs.replace(farm, registry=registry))


class RegistryWithFleet(Registry, frozen=True):
    """With builders elsewhere as they are known here; none of them is ever stored among those of here."""

    elsewhere: Mapping[str, BuilderRecord]

    def read(self) -> Records:
        records = super().read()
        records.update({id: one for id, one in self.elsewhere.items() if id not in records})
        return records

    def _store(self, records: Records) -> None:
        for id in self.elsewhere:
            records.pop(id, None)
        super()._store(records)

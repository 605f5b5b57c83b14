"""Verbs that cover all machines: verbs over all builders, and ids such as `@idle`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import structs

from agent_farm.builders.status import ALIVE
from agent_farm.errors import AgentFarmError
from agent_farm.farm.listing import Builder
from agent_farm.fleet.book import Book
from agent_farm.fleet.calling import call
from agent_farm.operations.builders import spelled_out
from agent_farm.operations.fleet.ask_machines import ask_each, fields_given
from agent_farm.operations.fleet.prune_elsewhere import prune
from agent_farm.operations.fleet.refresh import refresh, refresh_quickly
from agent_farm.operations.fleet.rows_elsewhere import answer_of, shown_rows
from agent_farm.operations.operation import Context, Operation
from agent_farm.operations.prune import Prune, Running, Stays
from agent_farm.operations.restore import AllRemoved
from agent_farm.operations.stop import Stop

Verb = Operation[Any, Any]
OverAll = Callable[[Verb, Context, Any, Book], Iterator[Any]]


def over_all(verb: Verb, request: Any) -> OverAll | None:
    """How to run the verb over all machines; None if the request does not cover them."""
    if verb.name == "removed":
        return _removed
    if verb.name == "stop" and request.all and not request.ids:
        return _stop
    if verb.name == "prune" and request.ids in ((), ("@landed",)):
        return _prune
    return None


def with_words(context: Context, request: Any) -> Any:
    """The request with each `@word` replaced by ids; unchanged if these stand for no builders."""
    ids = getattr(request, "ids", ())
    if not any(id.startswith("@") for id in ids):
        return request
    rows = shown_rows(context.farm, refresh_quickly(context.farm))
    found = tuple(spelled_out(structs.replace(context, tell=lambda text: None), ids, rows))
    return structs.replace(request, ids=found) if found else request


def _stop(verb: Verb, context: Context, request: Stop, book: Book) -> Iterator[Any]:
    yield from verb.run(context, request)
    rows = shown_rows(context.farm, refresh(context.farm))
    may_run = ("queued", *ALIVE, "unknown")
    ids = [one.record.id for one in rows if one.status.state in may_run]
    if ids:
        asked = structs.replace(request, all=False)
        yield from ask_each(verb, context, book, asked, ids, alone=False)


def _prune(verb: Verb, context: Context, request: Prune, book: Book) -> Iterator[Any]:
    """The machines say which builders; the evidence there decides whether one is removed."""
    yield from verb.run(context, request)
    book = refresh(context.farm)
    stop = request.stop or bool(request.ids)
    chosen: list[str] = []
    for one in shown_rows(context.farm, book):
        part = _looked_at(one, stop=stop, with_nothing=request.stop)
        if isinstance(part, str):
            chosen.append(part)
        elif part is not None:
            yield part
    if chosen:
        asked = structs.replace(request, ids=tuple(chosen), stop=stop)
        yield from prune(context, book, asked, chosen, alone=False)


def _looked_at(one: Builder, *, stop: bool, with_nothing: bool) -> str | Stays | Running | None:
    """The id of a builder to remove, or a message about it; None to leave it out."""
    id, status, git = one.record.id, one.status, one.git
    if status.state == "unknown":
        return Stays(id=id, reason=status.reason or f"{one.host} has not reported it")
    is_idle = status.state == "idle"
    if not (is_idle or status.is_finished):
        return None
    has_landed = git is not None and git.landed is True and not status.cut_short
    if not has_landed or (git and (git.dirty or git.untracked)):
        return None if is_idle else Stays(id=id, reason=f"{one.host} has work of it that has not landed")
    if not is_idle or (stop and (with_nothing or (git and git.has_commits))):
        return id
    return Running(id=id) if git and git.has_commits else None


def _removed(verb: Verb, context: Context, request: Any, book: Book) -> Iterator[Any]:
    own: AllRemoved = verb.collect(list(verb.run(context, request)))
    found = list(own.removed)
    for host in sorted({placed.host for placed in book.removed.values()}):
        try:
            answer = answer_of(AllRemoved, call(book, host, "removed", fields_given(request)), host)
        except AgentFarmError as error:
            context.tell(f"Builders removed on {host} are left out: {error.sentence}")
            continue
        found += [one for one in answer.removed if one.id in book.removed]
    yield AllRemoved(tuple(found))

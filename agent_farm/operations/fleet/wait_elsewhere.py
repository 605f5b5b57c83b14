"""`wait` for builders here and on other machines: for all of them, or for the first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import structs

from agent_farm.errors import AgentFarmError, TimedOut, Unreachable
from agent_farm.farm.listing import list_builders
from agent_farm.fleet.book import Book
from agent_farm.git.asking import side_by_side
from agent_farm.operations.builders import choose_all
from agent_farm.operations.fleet.ask_machines import ask_machine
from agent_farm.operations.fleet.rows_elsewhere import shown_rows
from agent_farm.operations.operation import Context, Operation, only
from agent_farm.operations.shown import BuilderShown, show_all
from agent_farm.operations.wait import DEFAULT_STATES, Wait, Waited

_TURN_SECONDS = 2.0  # the longest delay of an interrupt
_PAUSE_SECONDS = 1.0

Verb = Operation[Any, Any]
Groups = Mapping[str, tuple[str, ...]]


def wait_anywhere(
    verb: Verb, context: Context, book: Book, request: Wait, here: Sequence[str], there: Sequence[str]
) -> Iterator[Waited]:
    groups = {"": tuple(here)} if here else {}
    groups |= {
        host: ids for host in book.machines if (ids := tuple(id for id in there if id in book.on(host)))
    }
    ask = partial(_ask, verb, context, book, request, groups)
    act = _wait_for_one if request.any_is_enough and len(groups) > 1 else _wait_for_all
    yield act(context, book, request, groups, ask)


def _ask(
    verb: Verb, context: Context, book: Book, request: Wait, groups: Groups, host: str, seconds: float | None
) -> tuple[BuilderShown, ...]:
    asked = structs.replace(request, ids=groups[host], timeout=seconds)
    found: Waited = (
        ask_machine(verb, context, book, asked, host, groups[host])
        if host
        else only(list(verb.run(context, asked)))
    )
    return found.builders


Ask = Callable[[str, float | None], tuple[BuilderShown, ...]]


def _wait_for_all(context: Context, book: Book, request: Wait, groups: Groups, ask: Ask) -> Waited:
    """For those here, then machine by machine; builders that have arrived are not waited for again."""
    until = None if request.timeout is None else time.monotonic() + request.timeout
    found: list[BuilderShown] = []
    for host in groups:
        found += ask(host, None if until is None else max(0.0, until - time.monotonic()))
    return Waited(tuple(found))


def _wait_for_one(context: Context, book: Book, request: Wait, groups: Groups, ask: Ask) -> Waited:
    """All are asked at once, for a short time each turn, so that no call outlives the caller over there.

    A machine that cannot be asked is asked again, as long as another one answers.
    """
    until = None if request.timeout is None else time.monotonic() + request.timeout
    told: set[str] = set()
    while True:
        left = _TURN_SECONDS if until is None else max(0.0, until - time.monotonic())
        turn = min(_TURN_SECONDS, left)
        answers = side_by_side({host: partial(ask, host, turn) for host in groups}, workers=len(groups))
        lost = {host: one for host, one in answers.items() if isinstance(one, Unreachable)}
        if any(not isinstance(one, AgentFarmError) for one in answers.values()):
            return Waited(tuple(_all(context, book, groups, answers)))
        for one in answers.values():
            if isinstance(one, AgentFarmError) and not isinstance(one, (TimedOut, Unreachable)):
                raise one
        if len(lost) == len(groups):
            raise next(iter(lost.values()))
        for host in lost.keys() - told:
            context.tell(f"{lost[host].sentence} Waiting for the others.")
        told |= lost.keys()
        if until is not None and time.monotonic() >= until:
            raise _late(answers, request)
        if lost:  # these failed at once, so the turn took no time
            time.sleep(min(_PAUSE_SECONDS, turn))


def _late(answers: Mapping[str, object], request: Wait) -> TimedOut:
    errors = [one for one in answers.values() if isinstance(one, AgentFarmError)]
    evidence = [line for one in errors for line in (one.evidence or (one.sentence,))]
    wanted = " or ".join(sorted(request.states or DEFAULT_STATES))
    return TimedOut(f"Not {wanted} after {request.timeout:g} s", evidence=evidence)


def _all(context: Context, book: Book, groups: Groups, answers: Mapping[str, Any]) -> Iterator[BuilderShown]:
    """The answers, and as known here those builders whose machine did not answer."""
    for host, ids in groups.items():
        answer = answers[host]
        if not isinstance(answer, AgentFarmError):
            yield from answer
        elif host:
            yield from show_all(shown_rows(context.farm, book, ids))
        else:
            chosen = [record.id for record in choose_all(context, ids)]
            yield from show_all(list_builders(context.farm, chosen, with_git=False))

"""`af path`, `af capture`, `af logs`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import click
from msgspec import structs

from agent_farm.builders.events import Event, load_events
from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.output import answer, printable
from agent_farm.errors import UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status
from agent_farm.operations.builders import choose

_FOLLOW_SECONDS = 0.2
_FOLLOW_ELSEWHERE_SECONDS = 1.0


path = command_of(Way("path", lambda found: answer(found.path)), epilog='Go there: cd "$(af path ID)"')

capture = command_of(
    Way("capture", lambda found: answer(found.screen.rstrip("\n"))),
    short={"history": "-n", "escapes": "-e"},
    metavars={"history": "LINES"},
)


def _follow(typed: Typed) -> int | None:
    """Runs until the builder has ended."""
    if not typed.values["follow"]:
        return None
    if typed.as_json:
        raise UsageError("Flags are mutually exclusive: --follow, --json", hint="af logs --help")
    look, pause = _looks(typed)
    shown = -typed.request.limit
    while True:
        ended, events = look()
        _show_events(events[shown:])
        shown = len(events)
        if ended:
            return 0
        time.sleep(pause)


def _looks(typed: Typed) -> tuple[Callable[[], tuple[bool, Sequence[Event]]], float]:
    """A look, and the seconds until the next. It first asks whether the builder has ended, to miss none."""
    farm = typed.context.farm
    if farm.paths.fleet.exists():
        from agent_farm.operations.fleet.elsewhere import host_of

        if host := host_of(typed.context, typed.request):
            return partial(_look_elsewhere, typed, host), _FOLLOW_ELSEWHERE_SECONDS
    id = choose(typed.context, typed.request.id).id
    return lambda: (_has_ended(farm, id), load_events(farm.run(id).events)), _FOLLOW_SECONDS


def _look_elsewhere(typed: Typed, host: str) -> tuple[bool, Sequence[Event]]:
    from agent_farm.operations.fleet.elsewhere import elsewhere_of
    from agent_farm.operations.fleet.refresh import refresh
    from agent_farm.operations.fleet.rows_elsewhere import shown_rows

    farm, whole = typed.context.farm, structs.replace(typed.request, limit=0)
    book = refresh(farm, {host})
    found = elsewhere_of(farm, whole.id)
    ended = all(one.status.is_finished for one in shown_rows(farm, book, [found[1]])) if found else True
    return ended, typed.operation.answer_to(typed.context, whole).events


def _has_ended(farm: Farm, id: str) -> bool:
    record = farm.registry.read().get(id)
    return record is None or read_status(farm, record).is_finished


def _show_events(events: Sequence[Event]) -> None:
    for event in events:
        answer(_line(event))


def _line(event: Event) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
    parts = [when, event.source.ljust(8), (event.state or "").ljust(9), event.event]
    return printable("  ".join(parts) + (f": {event.reason}" if event.reason else "")).replace("\n", " ")


logs = command_of(
    Way(
        "logs",
        lambda found: _show_events(found.events),
        before=_follow,
    ),
    params={
        "limit": click.Option(
            ["--limit", "-n"],
            type=click.IntRange(0),
            default=0,
            metavar="EVENTS",
            help="Only the newest ones.",
        )
    },
    also=[click.Option(["--follow", "-f"], is_flag=True, help="Keep printing until the builder has ended.")],
)

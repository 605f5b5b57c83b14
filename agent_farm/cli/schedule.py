"""`af schedule`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agent_farm.cli.cells import moment
from agent_farm.cli.columns import table
from agent_farm.cli.completing import complete_schedules
from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.durations import age_option
from agent_farm.cli.family import Family
from agent_farm.cli.options import current_farm
from agent_farm.cli.output import answer, narrate, narrate_hint, printable, terminal_width
from agent_farm.cli.run import CWD, NO_WAIT, show_triggered, waits
from agent_farm.consent import HINT
from agent_farm.operations.schedule import Fires, FoundSchedules, OneSchedule, ScheduleShown
from agent_farm.server.launching import running_server


def _show_all(found: FoundSchedules) -> None:
    if not found.schedules:
        narrate("There are no schedules.")
        narrate_hint('af schedule add NAME "0 8 * * *" "PROMPT"')
    several = len({one.butler for one in found.schedules}) > 1
    names = [f"{one.butler}/{one.name}" if several else one.name for one in found.schedules]
    rows = [
        (name, one.cron, _next(one), printable(" ".join(one.prompt.split())))
        for name, one in zip(names, found.schedules, strict=True)
    ]
    for line in table(rows, terminal_width()):
        answer(line)
    if not all(one.agreed for one in found.schedules):
        narrate('Schedules marked "not agreed to" come from the repository and do not fire.')
        narrate_hint(HINT)


def _tell_no_server(typed: Typed, found: OneSchedule) -> None:
    if running_server(typed.context.farm.root) is None:
        narrate("The server is not running; nothing fires until it is.")
        narrate_hint("af butler start")


def _show_history(found: Fires) -> None:
    for fire in found.fires:
        answer(f"{moment(fire.due)}  {fire.outcome}")
    if not found.fires:
        one = found.schedule
        when = f"next {_next(one)}" if one.enabled else "it is disabled"
        narrate(f"{one.name} was never due; {when}.")


def _next(one: ScheduleShown) -> str:
    if not one.enabled:
        return "disabled"
    if not one.agreed:
        return "not agreed to"
    return "over" if one.next_due is None else moment(one.next_due)


def _entry(values: dict[str, Any]) -> dict[str, Any]:
    return {"cwd": _from_top(current_farm().root, values["cwd"]) if values["cwd"] else None}


def _from_top(root: Path, place: Path) -> str:
    """The directory relative to the root of the checkout, since the farm may be moved."""
    return str(place.relative_to(root)) if place.is_relative_to(root) else str(place)


def _switch(name: str, help: str, *, on: bool) -> click.Command:
    return command_of(
        Way(
            "schedule_update",
            lambda found: answer(f"{found.schedule.name}: {_next(found.schedule)}"),
            build=lambda values: {"enabled": on},
        ),
        name=name,
        help=help,
        complete=_NAMED,
        params=dict.fromkeys(("cron", "prompt", "enabled", "late", "until")),
    )


_NAMED = {"name": complete_schedules}

schedule = Family(
    "schedule",
    help="""Prompts that run at set times, by five-field cron expressions.

    The farm's server fires them. Runs missed while it was down are made up once if they are no later
    than --late, and skipped otherwise. Schedules in a butler.toml are changed there.

    \b
      af schedule add digest "0 8 * * 1-5" "Write the daily digest" --late 12h
      af schedule add tidy "0 3 * * *" "Sort the changelog" --until 2027-03-31
      af schedule list
    """,
    commands=[
        command_of(Way("schedule_list", _show_all)),
        command_of(
            Way(
                "schedule_create",
                lambda found: answer(f"{found.schedule.name}: next {_next(found.schedule)}"),
                build=_entry,
                after=_tell_no_server,
            ),
            name="add",
            help="Run PROMPT whenever CRON is due.",
            params={
                "cwd": CWD,
                "late": age_option(
                    "--late", "Make up for a missed run if it is no later than this; 0: however late.", "1h"
                ),
            },
        ),
        command_of(
            Way("schedule_delete", lambda found: answer(f"{found.removed} removed")),
            name="remove",
            complete=_NAMED,
        ),
        _switch("enable", "Let a schedule fire again, from now on.", on=True),
        _switch("disable", "Keep a schedule, but do not fire it.", on=False),
        command_of(Way("schedule_history", _show_history), complete=_NAMED),
        command_of(
            Way("schedule_run", show_triggered, build=waits),
            complete=_NAMED,
            params={"wait": None},
            also=[NO_WAIT],
        ),
    ],
)

"""`af schedule`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_farm.cli.options import current_farm, json_option, yes_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable
from agent_farm.consent import HINT

if TYPE_CHECKING:
    from pathlib import Path

    from agent_farm.sessions.schedules import ScheduleStore

_butler = click.option("--butler", metavar="NAME", help="Butler it belongs to; default: the farm's own.")


@click.group()
def schedule() -> None:
    """Prompts that run at set times, by five-field cron expressions.

    They fire from the farm's server. What was missed while it was down is made up once when it is not later
    than --late, and passed over otherwise. Schedules in a butler.toml are changed there.

    \b
      af schedule add daily_digest "0 8 * * 1-5" "Write the digest of yesterday's commits" --late 12h
      af schedule add tidy "0 3 * * *" "Sort the changelog" --cwd docs --until 2027-03-31
      af schedule list
    """


@schedule.command(name="list")
@_butler
@json_option
def list_command(butler: str | None, as_json: bool) -> None:
    """List all schedules, with when each is due next; of all butlers, or of one."""
    from agent_farm.sessions.agreement import schedule_json

    stores = [_store(name) for name in ([butler] if butler else _butlers())]
    found = [schedule_json(root, store.butler, entry) for root, store in stores for entry in store.all()]
    if as_json:
        answer_json({"schedules": found})
        return
    if not found:
        narrate("There are no schedules.")
        narrate_hint('af schedule add NAME "0 8 * * *" "PROMPT"')
    for entry in found:
        name = f"{entry['butler']}/{entry['name']}" if len(stores) > 1 else entry["name"]
        answer(f"{name:<20} {entry['cron']:<15} {_next(entry):<17} {printable(entry['prompt'])[:80]}")
    if any(not entry["agreed"] for entry in found):
        narrate("What is not agreed to comes from the repository, and does not fire.")
        narrate_hint(HINT)


@schedule.command()
@click.argument("name")
@click.argument("cron")
@click.argument("prompt")
@click.option("--timezone", metavar="ZONE", help="As in Europe/Berlin; default: this machine's.")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Directory to run in; default: the butler's own.",
)
@click.option("--late", metavar="AGE", default="1h", show_default=True, help="0: made up however late.")
@click.option("--until", metavar="DAY", help="The last day, as in 2027-03-31, or a time of it.")
@_butler
@json_option
def add(
    name: str,
    cron: str,
    prompt: str,
    timezone: str | None,
    cwd: Path | None,
    late: str,
    until: str | None,
    butler: str | None,
    as_json: bool,
) -> None:
    """Run PROMPT whenever CRON is due."""
    from agent_farm.cli.sessions import seconds_of
    from agent_farm.server.launching import running_server
    from agent_farm.sessions.butlers import ScheduleEntry

    root, store = _store(butler)
    seconds = 0.0 if late == "0" else seconds_of(late, "--late")
    place = _from_top(root, cwd) if cwd else None
    entry = store.create(ScheduleEntry(name, cron, prompt, timezone, place, seconds, until)).to_json()
    if as_json:
        answer_json({"schedule": entry})
        return
    answer(f"{name}: next {_next(entry)}")
    if running_server(root, butler) is None:
        narrate("The server is not running; nothing fires until it is.")
        narrate_hint("af butler start")


@schedule.command()
@click.argument("name")
@_butler
@json_option
def remove(name: str, butler: str | None, as_json: bool) -> None:
    """Remove a schedule."""
    _store(butler)[1].delete(name)
    answer_json({"removed": name}) if as_json else answer(f"{name} removed")


@schedule.command()
@click.argument("name")
@_butler
@json_option
def enable(name: str, butler: str | None, as_json: bool) -> None:
    """Let a schedule fire again, from now on."""
    _switch(name, butler, as_json, on=True)


@schedule.command()
@click.argument("name")
@_butler
@json_option
def disable(name: str, butler: str | None, as_json: bool) -> None:
    """Keep a schedule, and do not fire it."""
    _switch(name, butler, as_json, on=False)


@schedule.command()
@click.argument("name")
@_butler
@json_option
def history(name: str, butler: str | None, as_json: bool) -> None:
    """List when a schedule was due, and what became of it."""
    _, store = _store(butler)
    entry = store.get(name).to_json()
    fires = store.fires(name)
    if as_json:
        answer_json({"fires": fires})
        return
    for fire in fires:
        answer(f"{_when(fire['due'])}  {fire['outcome']}")
    if not fires:
        when = f"next {_next(entry)}" if entry["enabled"] else "it is disabled"
        narrate(f"{name} was never due; {when}.")


@schedule.command(name="run")
@click.argument("name")
@click.option("--no-wait", is_flag=True, help="Print the session's id and leave.")
@_butler
@yes_option
@json_option
def run_command(name: str, no_wait: bool, butler: str | None, yes: bool, as_json: bool) -> int:
    """Run a schedule's prompt now, due or not, as `af trigger` would. Its due times stay as they are."""
    from agent_farm.cli.run import run_schedule

    _, store = _store(butler)
    return run_schedule(store.butler, store.get(name), no_wait=no_wait, yes=yes, as_json=as_json)


def _from_top(root: Path, place: Path) -> str:
    """A directory of the checkout by its name from the top: the farm may be moved."""
    return str(place.relative_to(root)) if place.is_relative_to(root) else str(place)


def _butlers() -> list[str]:
    from agent_farm.sessions.butlers import all_butler_names

    return all_butler_names(current_farm().root)


def _switch(name: str, butler: str | None, as_json: bool, *, on: bool) -> None:
    entry = _store(butler)[1].update(name, enabled=on).to_json()
    answer_json({"schedule": entry}) if as_json else answer(f"{name}: {_next(entry)}")


def _store(butler: str | None) -> tuple[Path, ScheduleStore]:
    from agent_farm.sessions.stores import open_schedules

    root = current_farm(tolerant=True).root
    return root, open_schedules(root, butler)


def _next(entry: dict[str, Any]) -> str:
    if not entry["enabled"]:
        return "disabled"
    if not entry.get("agreed", True):
        return "not agreed to"
    return "over" if entry["next_due"] is None else _when(entry["next_due"])


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))

"""`af stop`, `af resume`, `af recover`."""

from __future__ import annotations

import click

from agent_farm.builders.ids import match_builder
from agent_farm.cli.options import (
    asker,
    builder_json,
    confirm,
    current_farm,
    id_argument,
    ids_argument,
    json_option,
    yes_option,
)
from agent_farm.cli.output import answer, answer_json, is_interactive, narrate, narrate_hint, show_error
from agent_farm.errors import AgentFarmError, UsageError


@click.command()
@ids_argument(required=False)
@click.option("--all", "every", is_flag=True, help="Stop every builder that runs.")
@json_option
def stop(ids: tuple[str, ...], every: bool, as_json: bool) -> int:
    """End runtimes; worktree, branch and conversation stay.

    `af resume ID` goes on with the same conversation.
    """
    from agent_farm.builders.status import ALIVE
    from agent_farm.farm.listing import read_statuses
    from agent_farm.farm.stop import stop as end

    if bool(ids) == every:
        raise UsageError("Name builders, or --all", hint="af stop --help")
    farm = current_farm(tolerant=True)
    records = farm.records()
    if every:
        statuses = read_statuses(farm, records.values())
        may_run = (*ALIVE, "unknown")  # what could not be asked is not gone
        chosen = [record for record in records.values() if statuses[record.id].state in may_run]
    else:
        chosen = [records[match_builder(id, list(records))] for id in dict.fromkeys(ids)]
    stopped: list[str] = []
    failed: list[dict[str, str | None]] = []
    try:
        for record in chosen:
            try:
                end(farm, record)
            except AgentFarmError as error:
                failed.append({"id": record.id, "error": error.what, "why": error.why})
                show_error(error, as_json=False)  # the others are stopped all the same
                continue
            stopped.append(record.id)
            if not as_json:
                answer(f"{record.id} stopped")
    finally:
        if as_json:
            answer_json({"stopped": stopped, "failed": failed})
    if not chosen and not as_json:
        narrate("No builder runs.")
    return 1 if failed else 0


@click.command()
@id_argument
@click.option("--attach", is_flag=True, help="Attach to the builder at once.")
@yes_option
@json_option
def resume(id: str, attach: bool, yes: bool, as_json: bool) -> None:
    """Start a builder's runtime again, with the same conversation and the same role."""
    from agent_farm.farm.resume import resume as start

    farm = current_farm()
    resumed = start(farm, farm.require(id), yes=yes, ask=asker())
    record = resumed.record
    if as_json:
        answer_json({"builder": builder_json(farm, record.id), "continues": resumed.continues})
    else:
        answer(record.id)
        if not resumed.continues:
            narrate("There was no conversation to go on with; it starts anew with the same prompt.")
        narrate_hint(f"af attach {record.id}")
    if attach:
        from agent_farm.cli.look import attach_to

        attach_to(farm, record)


@click.command()
@yes_option
@json_option
def recover(yes: bool, as_json: bool) -> int:
    """Bring back, after a reboot or a dead tmux server, all builders that had neither ended nor been stopped.

    Shows the plan first. Without a terminal it needs --yes to carry it out.
    """
    from agent_farm.farm.resume import lost_builders
    from agent_farm.farm.resume import resume as start

    farm = current_farm()
    lost = lost_builders(farm)
    if not lost:
        narrate("No builder is lost.")
    for record in lost:
        narrate(f"{record.id}  {record.runtime}  {record.title[:60]}")
    if lost and not (yes or (is_interactive() and confirm(f"Resume {len(lost)} builders?"))):
        if is_interactive():
            return 1
        raise UsageError("Nothing was resumed", why="The plan needs --yes.", hint="af recover --yes")
    failed = []
    for record in lost:
        try:
            start(farm, record, yes=yes, ask=asker())
        except AgentFarmError as error:
            failed.append(record.id)
            show_error(error, as_json=False)
        else:
            if not as_json:
                answer(f"{record.id} resumed")
    if as_json:
        back = [record.id for record in lost if record.id not in failed]
        answer_json({"resumed": back, "failed": failed})
    return 1 if failed else 0

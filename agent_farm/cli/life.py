"""`af stop`, `af resume`, `af recover`."""

from __future__ import annotations

from collections.abc import Callable

import click

from agent_farm.builders.prompts import GO_ON
from agent_farm.cli.cells import counted, cut
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.options import (
    F,
    asker,
    builder_json,
    confirm,
    current_farm,
    id_argument,
    json_option,
    yes_option,
)
from agent_farm.cli.output import answer, answer_json, is_interactive, narrate, narrate_hint, show_error
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.launch import as_command
from agent_farm.operations.stop import Stopped


def _conclude(found: Stopped) -> None:
    if not (found.stopped or found.failed):
        narrate("No builder is running.")


stop = command_of(Way("stop", lambda id: answer(f"{id} stopped"), _conclude))


def continue_option(help: str) -> Callable[[F], F]:
    """`--continue`, with or without a text of one's own."""
    return click.option(
        "--continue", "say", metavar="[TEXT]", is_flag=False, flag_value=GO_ON, default=None, help=help
    )


@click.command()
@id_argument
@continue_option("Tell it to go on, in your words or in af's.")
@click.option("--attach", is_flag=True, help="Attach to the builder at once.")
@yes_option
@json_option
def resume(id: str, say: str | None, attach: bool, yes: bool, as_json: bool) -> None:
    """Start a builder's runtime again, with the same conversation and the same role.

    A builder whose turn was cut short is `interrupted` until it is told to go on.
    """
    from agent_farm.farm.resume import resume as start

    farm = current_farm()
    resumed = start(farm, farm.require(id), say=said(say), yes=yes, ask=asker())
    record = resumed.record
    if as_json:
        answer_json({"builder": builder_json(farm, record.id), "continues": resumed.continues})
    else:
        answer(record.id)
        if not resumed.continues:
            narrate("There was no conversation to continue; it starts again with the same prompt.")
        narrate_hint(f"af attach {record.id}")
    if attach:
        from agent_farm.cli.look import attach_to

        attach_to(farm, record)


@click.command()
@continue_option("Tell those that were in the middle of a turn to go on, in your words or in af's.")
@yes_option
@json_option
def recover(say: str | None, yes: bool, as_json: bool) -> int:
    """Bring back all lost builders after a reboot or a dead tmux server.

    Shows the plan first, and who was in the middle of a turn: those come back as `interrupted`, or go on
    with --continue. Without a terminal it needs --yes to carry the plan out.
    """
    from agent_farm.farm.resume import lost_builders
    from agent_farm.farm.resume import resume as start

    say = said(say)
    farm = current_farm()
    lost = lost_builders(farm)
    if not lost:
        narrate("No builder is lost.")
    for one in lost:
        middle = "in the middle of a turn" if one.cut_short else ""
        narrate(f"{one.record.id:<22}  {one.record.runtime:<12}  {middle:<23}  {cut(one.record.title, 60)}")
    if lost and not (yes or (is_interactive() and confirm(f"Resume {counted(len(lost), 'builder')}?"))):
        if is_interactive():
            return 1
        again = [] if say is None else ["--continue"] if say == GO_ON else ["--continue", say]
        raise UsageError(
            "Nothing was resumed",
            why="Pass --yes to go ahead.",
            hint=as_command("af", "recover", "--yes", *again),
        )
    failed, interrupted = [], []
    for one in lost:
        record = one.record
        try:
            resumed = start(farm, record, say=say if one.cut_short else None, yes=yes, ask=asker())
        except AgentFarmError as error:
            failed.append(record.id)
            show_error(error, as_json=False)
            continue
        if one.cut_short and say is None and resumed.continues:
            interrupted.append(record.id)
        if not as_json:
            answer(f"{record.id} resumed")
    if interrupted and not as_json:
        narrate(f"{counted(len(interrupted), 'builder')} stopped in the middle of a turn.")
        narrate_hint(f'af send {" ".join(interrupted)} "Go on"')
    if as_json:
        back = [one.record.id for one in lost if one.record.id not in failed]
        answer_json({"resumed": back, "failed": failed, "interrupted": interrupted})
    return 1 if failed else 0


def said(text: str | None) -> str | None:
    if text is not None and not text.strip():
        raise UsageError("--continue: the text is empty", hint="af resume --help")
    return text

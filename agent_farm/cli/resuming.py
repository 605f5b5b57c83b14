"""`af resume`, `af recover`."""

from __future__ import annotations

import click
from msgspec.structs import replace

from agent_farm.builders.prompts import GO_ON
from agent_farm.cli.attach import attach_elsewhere, attach_to
from agent_farm.cli.cells import counted, cut
from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.options import confirm
from agent_farm.cli.output import answer, is_interactive, narrate, narrate_hint, printable, terminal_width
from agent_farm.errors import UsageError
from agent_farm.launch import as_command
from agent_farm.operations.recover import Recovered
from agent_farm.operations.resume import Resumed


def _continue_option(help: str) -> click.Option:
    """`--continue`, with or without a text of the user's own."""
    return click.Option(
        ["--continue", "say"], metavar="[TEXT]", is_flag=False, flag_value=GO_ON, default=None, help=help
    )


def _show_resumed(found: Resumed) -> None:
    answer(found.builder.id)
    if not found.continues:
        narrate("There was no conversation to continue; it starts again with the same prompt.")
    narrate_hint(f"af attach {found.builder.id}")


def _attach(typed: Typed, found: Resumed) -> None:
    if typed.values["attach"]:
        if found.builder.host:
            attach_elsewhere(typed.context.farm, found.builder.id)
        attach_to(found.builder)


resume = command_of(
    Way("resume", _show_resumed, after=_attach),
    params={"say": _continue_option("Tell it to continue, in your words or af's.")},
    also=[click.Option(["--attach"], is_flag=True, help="Attach to the builder right away.")],
)


def _agree(typed: Typed) -> int | None:
    """Shows the plan first; without a terminal, --yes is needed to carry it out."""
    request = typed.request
    plan: Recovered = typed.operation.answer_to(typed.context, replace(request, dry_run=True))
    if request.dry_run and typed.as_json:
        return None
    lost = plan.would_resume
    if not lost:
        narrate("No builder is lost.")
    id_width, width = max((len(one.id) for one in lost), default=0), terminal_width()
    for one in lost:
        middle = "mid-turn" if one.cut_short else ""
        line = f"{one.id:{id_width}}  {one.runtime:<11}  {middle:<8}  {one.title}"
        narrate(cut(printable(line), width))
    if request.dry_run:
        return 0
    if not lost or request.yes:
        return None
    if is_interactive():
        return None if confirm(f"Resume {counted(len(lost), 'builder')}?") else 1
    again = [] if request.say is None else ["--continue", *([request.say] if request.say != GO_ON else [])]
    raise UsageError(
        "Nothing was resumed",
        why="Pass --yes to go ahead.",
        hint=as_command(
            "af", "recover", *request.ids, *(["--on", request.on] if request.on else []), "--yes", *again
        ),
    )


def _tell_interrupted(found: Recovered) -> None:
    if found.interrupted:
        narrate(f"{counted(len(found.interrupted), 'builder')} stopped in the middle of a turn.")
        narrate_hint(f'af send {" ".join(found.interrupted)} "Go on"')


recover = command_of(
    Way("recover", lambda one: answer(f"{one.id} resumed"), _tell_interrupted, before=_agree),
    params={
        "say": _continue_option(
            "Tell those that were in the middle of a turn to continue, in your words or af's."
        )
    },
    epilog="Shows what it is about to do and asks first; without a terminal, pass --yes.",
)

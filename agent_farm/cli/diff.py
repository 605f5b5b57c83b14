"""`af diff`."""

from __future__ import annotations

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import has_colour, narrate, page, printable
from agent_farm.operations.diff import Difference


def _show_diff(found: Difference) -> None:
    if found.branch != found.own_branch:
        where = f"on {printable(found.branch)}" if found.branch else f"detached at {found.commit[:10]}"
        narrate(f"{found.id} is {where}, not on {found.own_branch}.")
    if found.diff:
        page(found.diff.rstrip("\n"))
    else:
        narrate(f"{found.id} has changed nothing.")


diff = command_of(
    Way("diff", _show_diff, build=lambda typed: {"colors": has_colour() and not typed["as_json"]}),
    params={"colors": None, "most": None},
)

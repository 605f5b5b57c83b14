"""`af doctor`."""

from __future__ import annotations

import click

from agent_farm.cli.options import current_directory, json_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable, style

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "red")}


@click.command()
@click.option("--fix", is_flag=True, help="Heal what can be healed; nothing that a person made is removed.")
@click.option("--moved", is_flag=True, help="The farm was moved here, though its old place cannot be seen.")
@json_option
def doctor(fix: bool, moved: bool, as_json: bool) -> int:
    """Find, explain and heal what is broken.

    Exit code 1 when a problem is left. A farm that was moved, renamed or copied is made right by every
    command; only where its old place cannot be seen from here (in a container) you have to say --moved.
    """
    from agent_farm.farm.doctor import examine
    from agent_farm.farm.farm import open_farm

    outcomes = []
    farm = open_farm(current_directory(), lambda text: narrate(printable(text)), was_moved=moved)
    for outcome in examine(farm, fix=fix):
        outcomes.append(outcome)
        if as_json:
            continue
        mark, colour = _MARKS[outcome.finding.level]
        answer(f"{style(mark.ljust(8), colour)}{printable(outcome.finding.what)}")
        if outcome.healed:
            answer(f"{style('healed'.ljust(8), 'green')}{printable(outcome.healed)}")
        elif outcome.error:
            answer(f"{style('failed'.ljust(8), 'red')}{printable(outcome.error)}")
        if outcome.finding.remedy and not outcome.healed and outcome.finding.level != "ok":
            narrate_hint(outcome.finding.remedy)
    left = [o for o in outcomes if o.finding.level == "problem" and not o.healed]
    if as_json:
        rows = [
            {
                "level": outcome.finding.level,
                "what": outcome.finding.what,
                "healed": outcome.healed,
                "error": outcome.error,
                "remedy": outcome.finding.remedy,
            }
            for outcome in outcomes
        ]
        answer_json({"findings": rows, "problems": len(left)})
    elif not fix and any(outcome.finding.heal for outcome in left):
        narrate_hint("af doctor --fix")
    return 1 if left else 0

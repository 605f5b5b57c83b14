"""`af diff`, `af merge`, `af conflicts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from agent_farm.builders.ids import match_builder
from agent_farm.cli.options import asker, current_farm, id_argument, ids_argument, json_option, yes_option
from agent_farm.cli.output import (
    answer,
    answer_json,
    error_json,
    has_colour,
    narrate,
    narrate_hint,
    page,
    printable,
    show_error,
)
from agent_farm.errors import AgentFarmError
from agent_farm.launch import as_command
from agent_farm.settings import STRATEGIES

if TYPE_CHECKING:
    from agent_farm.builders.record import BuilderRecord
    from agent_farm.farm.comparing import Foreseen
    from agent_farm.farm.farm import Farm
    from agent_farm.farm.land import Landed, Outcome


@click.command()
@id_argument
@click.option("--stat", is_flag=True, help="Only which files, and how much.")
@click.option("--committed", is_flag=True, help="Leave out what is uncommitted or untracked.")
@json_option
def diff(id: str, stat: bool, committed: bool, as_json: bool) -> None:
    """Show what a builder changed since it began, uncommitted and untracked files included."""
    from agent_farm.farm.comparing import diff as show

    farm = current_farm(tolerant=True)
    record = farm.require(id)
    found = show(farm, record, committed=committed, stat=stat, color=has_colour() and not as_json)
    if as_json:
        answer_json({"id": record.id, "diff": found.text, "branch": found.branch, "commit": found.commit})
        return
    if found.branch != record.branch:
        where = f"on {printable(found.branch)}" if found.branch else f"detached at {found.commit[:10]}"
        narrate(f"{record.id} is {where}, not on {record.branch}.")
    if found.text:
        page(found.text.rstrip("\n"))
    else:
        narrate(f"{record.id} has changed nothing.")


@click.command()
@ids_argument(required=True)
@click.option("--strategy", type=click.Choice(STRATEGIES), help="Default: [merge] strategy, else merge.")
@click.option("--message", "-m", metavar="TEXT", help="Message of the merge or squash commit.")
@click.option("--here", is_flag=True, help="Land on the branch checked out here, even if it is not the base.")
@click.option(
    "--prune", "then_prune", is_flag=True, help="Remove each builder that has landed and is not at work."
)
@yes_option
@json_option
def merge(
    ids: tuple[str, ...],
    strategy: str | None,
    message: str | None,
    here: bool,
    then_prune: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Land what builders have checked out on the branch checked out here, in the order given.

    Here is the main checkout, or the linked worktree of yours in which you stand. Refused, with nothing
    changed, when it would conflict or touch files with uncommitted changes, or when [merge] check or a hook
    of the repository fails.
    """
    from agent_farm.farm.land import MergeRequest, land_each, outcomes_json

    farm = current_farm()
    records = farm.records()
    chosen = [records[match_builder(id, list(records))] for id in dict.fromkeys(ids)]
    outcomes: list[Outcome] = []
    removed: list[str] = []
    try:
        for outcome in land_each(farm, chosen, MergeRequest(strategy, message, here, yes, asker(), narrate)):
            outcomes.append(outcome)
            if outcome.landed is not None:
                _show_landed(outcome.landed, as_json)
                if then_prune and _removed(farm, outcome.landed):
                    removed.append(outcome.id)
                elif not then_prune and not as_json:
                    _show_next(farm, outcome.landed)
    except KeyboardInterrupt:
        rest = [record.id for record in chosen[len(outcomes) :]]
        narrate(f"Interrupted.{f' Not landed: {chr(44).join(rest)}' if rest else ''}")
        raise
    failed = next((one.error for one in outcomes if one.error), None)
    if failed is not None and len(chosen) == 1:
        raise failed
    if as_json:
        error = {"error": error_json(failed)} if failed else {}
        answer_json({**outcomes_json(outcomes, chosen), "removed": removed, **error})
    elif failed is not None:
        show_error(failed, as_json=False)
        _show_rest(outcomes, chosen)
    return failed.exit_code if failed else 0


def _show_landed(landed: Landed, as_json: bool) -> None:
    merged = landed.merged
    for line in landed.notes:
        narrate(printable(line))
    if not as_json and merged.before == merged.after:
        answer(f"{landed.id} has nothing to land")
    elif not as_json:
        other = f" (from {landed.branch or 'a detached HEAD'})" if landed.switched else ""
        answer(printable(f"{landed.id} landed on {merged.into}{other}, now at {merged.after[:10]}"))
    for path in landed.left_behind:
        narrate(f"  not committed, so not landed: {printable(path)}")


def _show_next(farm: Farm, landed: Landed) -> None:
    if landed.left_behind:
        narrate_hint(as_command("af", "send", landed.id, "Commit your work"))
    else:
        narrate_hint(_removal(farm, landed.id))


def _show_rest(outcomes: Sequence[Outcome], chosen: Sequence[BuilderRecord]) -> None:
    landed = [one.id for one in outcomes if one.landed]
    rest = [record.id for record in chosen[len(outcomes) :]]
    if landed:
        narrate(f"Merged before that, and still merged: {', '.join(landed)}")
    if rest:
        narrate(f"Not tried: {', '.join(rest)}")


def _removal(farm: Farm, id: str) -> str:
    """What removes a builder that has landed: one that has ended is not stopped first."""
    from agent_farm.farm.listing import read_status

    ended = read_status(farm, farm.require(id)).is_finished
    return as_command("af", "prune", *([] if ended else ["--stop"]), id)


def _removed(farm: Farm, landed: Landed) -> bool:
    """Remove it unless something stands against that, which is said; then it goes on as it was."""
    from agent_farm.farm.listing import read_status
    from agent_farm.farm.prune import Waived, prune

    record = farm.require(landed.id)
    state = read_status(farm, record).state
    if landed.left_behind:
        narrate(f"{landed.id} was kept: some work is not committed.")
        narrate_hint(as_command("af", "send", landed.id, "Commit your work"))
    elif state in ("working", "preparing", "waiting"):
        narrate(f"{landed.id} was kept: it is {state}.")
        narrate_hint(as_command("af", "prune", "--stop", landed.id))
    else:
        try:
            prune(farm, record, Waived(stop=True))
        except AgentFarmError as error:
            narrate(f"{landed.id} landed, and was kept:")
            show_error(error, as_json=False)
        else:
            narrate(f"{landed.id} removed")
            return True
    return False


@click.command()
@ids_argument(required=False)
@json_option
def conflicts(ids: tuple[str, ...], as_json: bool) -> int:
    """Preview which builders' committed work conflicts, with each other and with their base.

    Exit code 0 when there are none; 1 when there are, or when a pair cannot be compared because a branch
    is gone.
    """
    from agent_farm.farm.comparing import foresee_conflicts

    farm = current_farm(tolerant=True)
    records = farm.records()
    chosen = [records[match_builder(id, list(records))] for id in dict.fromkeys(ids)] or list(
        records.values()
    )
    found = foresee_conflicts(farm, chosen)
    if as_json:
        rows = [{"one": one.one, "other": one.other, "files": list(one.files)} for one in found.conflicts]
        unknown = [{"one": one.one, "other": one.other, "reason": one.reason} for one in found.unknown]
        answer_json({"conflicts": rows, "unknown": unknown})
    else:
        _show_foreseen(found, len(chosen))
    return 1 if found.conflicts or found.unknown else 0


def _show_foreseen(found: Foreseen, count: int) -> None:
    for conflict in found.conflicts:
        answer(printable(f"{conflict.one}  {conflict.other}  {', '.join(conflict.files)}"))
    for pair in found.unknown:
        answer(printable(f"{pair.one}  {pair.other}  ? not compared: {pair.reason}"))
    if not found.conflicts and not found.unknown:
        builders = "builder and its base" if count == 1 else "builders and their bases"
        narrate(f"No conflicts among {count} {builders}.")
    elif not found.conflicts:
        narrate("No conflicts among those that could be compared.")

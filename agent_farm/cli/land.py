"""`af diff`, `af merge`, `af conflicts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from agent_farm.builders.ids import match_builder
from agent_farm.cli.options import asker, current_farm, id_argument, ids_argument, json_option, yes_option
from agent_farm.cli.output import answer, answer_json, has_colour, narrate, narrate_hint, page, printable
from agent_farm.errors import AgentFarmError
from agent_farm.launch import as_command
from agent_farm.settings import STRATEGIES

if TYPE_CHECKING:
    from agent_farm.builders.record import BuilderRecord
    from agent_farm.farm.comparing import Foreseen
    from agent_farm.farm.land import Landed
    from agent_farm.git.merging import Merged


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
@click.option("--here", is_flag=True, help="Land on the branch checked out now, also if it is not the base.")
@click.option("--prune", "then_prune", is_flag=True, help="Stop and prune each builder that has landed.")
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
) -> None:
    """Land builders' branches on the main checkout's branch, in the order given.

    Refused, with nothing changed, when it would conflict or touch files with uncommitted changes, or when
    [merge] check fails.
    """
    from agent_farm.farm.land import land
    from agent_farm.shield import Shield

    farm = current_farm()
    records = farm.records()
    chosen = [records[match_builder(id, list(records))] for id in dict.fromkeys(ids)]
    rows: list[dict[str, str]] = []
    for place, record in enumerate(chosen):
        landed = None
        try:
            with Shield() as shield:
                landed = land(
                    farm, record, strategy=strategy, message=message, here=here, yes=yes, ask=asker(),
                    shield=shield,
                )  # fmt: skip
        except AgentFarmError as error:
            error.evidence = (*error.evidence, *(f"{row['id']} has landed before" for row in rows))
            raise
        except KeyboardInterrupt:
            _show_interrupted(landed, chosen[place:])
            raise
        if landed.settled:
            narrate(printable(f"A merge was cut short before: {landed.settled.told}"))
        merged = landed.merged
        rows.append({"id": record.id, "into": merged.into, "before": merged.before, "after": merged.after})
        if not as_json:
            _show_landed(record.id, merged)
        if landed.left_behind:
            _show_left_behind(record.id, landed.left_behind, stays=then_prune)
        elif then_prune:
            _prune(record.id)
        elif not as_json:
            narrate_hint(_removal(record))
    if as_json:
        answer_json({"merged": rows})


def _show_landed(id: str, merged: Merged) -> None:
    if merged.before == merged.after:
        answer(f"{id} has nothing to land")
    else:
        answer(f"{id} landed on {merged.into}, now at {merged.after[:10]}")


def _show_interrupted(landed: Landed | None, rest: Sequence[BuilderRecord]) -> None:
    """What is so after Ctrl-C: during the last step it waited for its end."""
    if landed is not None:
        narrate("")
        _show_landed(rest[0].id, landed.merged)
        rest = rest[1:]
    if rest:
        narrate(f"Interrupted. Not landed: {', '.join(record.id for record in rest)}")


def _removal(record: BuilderRecord) -> str:
    """What removes a builder that has landed: one that has ended is not stopped first."""
    from agent_farm.farm.listing import read_status

    prune = as_command("af", "prune", record.id)
    ended = read_status(current_farm(tolerant=True), record).is_finished
    return prune if ended else f"{as_command('af', 'stop', record.id)} && {prune}"


def _show_left_behind(id: str, paths: Sequence[str], *, stays: bool) -> None:
    for path in paths:
        narrate(f"  not committed, so not landed: {printable(path)}")
    if stays:
        narrate(f"{id} stays, with what did not land.")
    narrate_hint(as_command("af", "send", id, "Commit your work"))


def _prune(id: str) -> None:
    from agent_farm.builders.status import ALIVE
    from agent_farm.farm.listing import read_status
    from agent_farm.farm.prune import prune
    from agent_farm.farm.stop import stop

    farm = current_farm()
    record = farm.require_exact(id)
    if read_status(farm, record).state in ALIVE:
        record = stop(farm, record)
    prune(farm, record)
    narrate(f"{id} removed")


@click.command()
@ids_argument(required=False)
@json_option
def conflicts(ids: tuple[str, ...], as_json: bool) -> int:
    """Foresee which builders' committed work conflicts, with each other and with their base.

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

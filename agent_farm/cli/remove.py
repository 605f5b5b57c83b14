"""`af prune`, `af restore`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.options import builder_json, current_farm, ids_argument, json_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable, show_error
from agent_farm.errors import AgentFarmError, UsageError, WorkWouldBeLost

if TYPE_CHECKING:
    from agent_farm.builders.record import BuilderRecord
    from agent_farm.farm.farm import Farm
    from agent_farm.farm.prune import Pruned


@click.command(
    "prune",
    epilog="""\b
Finished: exited, failed, stopped or lost. Landed: every commit is on the base branch, the main
checkout's HEAD or a remote-tracking branch (also rebased or squashed), and nothing is uncommitted.

\b
Everything removed is salvaged first and comes back with af restore ID, until it is expired:
  af prune --expire 30d

\b
Exit code 4: refused, because work would be lost; the evidence is printed.
""",
)
@ids_argument(required=False)
@click.option("--discard-changes", is_flag=True, help="Remove although files are uncommitted or untracked.")
@click.option("--discard-commits", is_flag=True, help="Remove although commits have not landed.")
@click.option("--stop", is_flag=True, help="Stop the builders named first, if they run and can be removed.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--expire", metavar="AGE", help="Delete for good what was removed longer ago than AGE.")
@json_option
def prune_command(
    ids: tuple[str, ...],
    discard_changes: bool,
    discard_commits: bool,
    stop: bool,
    dry_run: bool,
    expire: str | None,
    as_json: bool,
) -> int:
    """Remove builders: without ids all that are finished and have landed."""
    if stop and not ids:
        raise UsageError("--stop takes the ids of builders", hint="af prune --stop ID")
    if expire is not None:
        return _expire(expire, bool(ids), as_json)
    from agent_farm.farm.prune import prune, require_prunable

    farm = current_farm()
    chosen = _chosen(farm, ids)
    allowed = {"discard_changes": discard_changes, "discard_commits": discard_commits, "stop": stop}
    done: list[Pruned] = []
    refused: list[str] = []
    for record in chosen:
        try:
            if dry_run:
                require_prunable(farm, record, **allowed)
                answer(f"{record.id} would be removed")
            else:
                done.append(prune(farm, record, **allowed))
                _show(done[-1], as_json)
        except WorkWouldBeLost as error:
            if len(chosen) == 1:
                raise
            refused.append(error.what)
            show_error(error, as_json=False)
    if as_json:
        answer_json({"removed": [_as_json(one) for one in done], "refused": refused})
    elif not chosen:
        narrate("Nothing to remove: no builder is finished and has landed.")
    return WorkWouldBeLost.exit_code if refused else 0


def _chosen(farm: Farm, ids: tuple[str, ...]) -> list[BuilderRecord]:
    """The ones named, by their whole ids; else all that go by themselves, with a word on the others."""
    if ids:
        return [farm.require_exact(id) for id in dict.fromkeys(ids)]
    from agent_farm.farm.prune import finished_and_landed

    chosen, others = finished_and_landed(farm)
    for id, evidence in others.items():
        narrate(f"{id} stays: {evidence.summary()}")
    return chosen


def _show(pruned: Pruned, as_json: bool) -> None:
    if as_json:
        return
    answer(f"{pruned.id} removed" + (f", with {pruned.branch}" if pruned.branch else ""))
    for path in pruned.kept:
        narrate(f"  kept: {printable(path)}")
    if pruned.left_out:
        narrate(f"  left out, made by a tool: {printable(_places(pruned.left_out))}")
    narrate_hint(f"af restore {pruned.id}")


def _as_json(pruned: Pruned) -> dict[str, object]:
    return {
        "id": pruned.id,
        "branch": pruned.branch,
        "salvage": pruned.ref,
        "kept": list(pruned.kept),
        "left_out": list(pruned.left_out),
    }


def _places(paths: tuple[str, ...]) -> str:
    """`node_modules, __pycache__ (in 12 places)`: a package has one in each of its directories."""
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    return ", ".join(
        found[0] if len(found) == 1 else f"{name} (in {len(found)} places)" for name, found in by_name.items()
    )


def _expire(age: str, has_ids: bool, as_json: bool) -> int:
    from agent_farm.farm.trash import expire, parse_age

    if has_ids:
        raise UsageError("--expire takes no ids", hint="af prune --help")
    gone = expire(current_farm(), parse_age(age))
    if as_json:
        answer_json({"expired": [{"id": kept.record.id, "epoch": kept.epoch} for kept in gone]})
        return 0
    for kept in gone:
        answer(f"{kept.record.id} of {_when(kept.epoch)} deleted for good")
    if not gone:
        narrate("Nothing is that old.")
    return 0


def complete_removed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from agent_farm.farm.trash import list_kept

    try:
        kept = list_kept(current_farm())
    except (AgentFarmError, OSError):
        return []
    ids = dict.fromkeys(one.record.id for one in kept)
    return [CompletionItem(id) for id in ids if id.startswith(incomplete)]


@click.command()
@click.argument("id", required=False, shell_complete=complete_removed)
@click.option("--at", "epoch", type=int, metavar="EPOCH", help="The removal of this second, not the newest.")
@click.option("--list", "listing", is_flag=True, help="Show what can be restored.")
@json_option
def restore(id: str | None, epoch: int | None, listing: bool, as_json: bool) -> None:
    """Bring a removed builder back: branch, worktree, uncommitted state and record."""
    from agent_farm.farm.restore import find_kept
    from agent_farm.farm.restore import restore as bring_back

    farm = current_farm()
    if listing or id is None:
        if not listing:
            raise UsageError(
                "Name a builder", why="--list shows what can be restored.", hint="af restore --list"
            )
        _list(id, as_json)
        return
    record = bring_back(farm, find_kept(farm, id, epoch))
    if as_json:
        answer_json({"builder": builder_json(farm, record.id)})
        return
    answer(f"{record.id} restored to {record.worktree} on {record.branch}")
    narrate_hint(f"af resume {record.id}")


def _list(id: str | None, as_json: bool) -> None:
    from agent_farm.farm.trash import list_kept

    kept = list_kept(current_farm(), id)
    if as_json:
        rows = [{"id": one.record.id, "epoch": one.epoch, "salvage": one.ref} for one in kept]
        answer_json({"removed": rows})
        return
    for one in kept:
        answer(f"{one.record.id}  {one.epoch}  {_when(one.epoch)}  {one.record.title[:60]}")
    if not kept:
        narrate("Nothing can be restored.")


def _when(epoch: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(epoch))

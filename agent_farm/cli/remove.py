"""`af prune`, `af restore`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.options import builder_json, current_farm, ids_argument, json_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable, show_error
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.launch import as_command

if TYPE_CHECKING:
    from agent_farm.builders.record import BuilderRecord
    from agent_farm.farm.farm import Farm
    from agent_farm.farm.prune import Result


@click.command(
    "prune",
    epilog="""\b
Finished: exited, failed, stopped or lost. Landed: every commit is on the base branch, the main
checkout's HEAD or a remote-tracking branch (also rebased or squashed), and nothing is
uncommitted.

\b
A removed builder is kept whole, but for directories that a tool makes again (node_modules),
and comes back with af restore ID, until it is expired:
  af prune --expire 30d

\b
Exit code 4: refused, because work would be lost; the evidence is printed.
""",
)
@ids_argument(required=False)
@click.option("--discard-changes", is_flag=True, help="Remove even if files are uncommitted or untracked.")
@click.option("--discard-commits", is_flag=True, help="Remove even if commits have not landed.")
@click.option(
    "--stop", is_flag=True, help="Stop running builders first, if they can be removed; without ids idle ones."
)
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
    if expire is not None:
        return _expire(expire, bool(ids), as_json)
    from agent_farm.farm.prune import Waived, prune_each, to_json

    farm = current_farm()
    chosen = [farm.require_exact(id) for id in dict.fromkeys(ids)] or _chosen(farm, stop)
    results: list[Result] = []
    for result in prune_each(farm, chosen, Waived(discard_changes, discard_commits, stop), dry_run=dry_run):
        if result.error and len(chosen) == 1:
            raise result.error
        results.append(result)
        if not as_json:
            _show(result)
    if as_json:
        answer_json(to_json(results))
    elif any(result.kept for result in results):
        narrate_hint(f"af restore {results[0].id if len(results) == 1 else 'ID'}")
    failed = [result.error for result in results if result.error]
    return max((error.exit_code for error in failed), default=0)


def _chosen(farm: Farm, stop: bool) -> Sequence[BuilderRecord]:
    """All that go by themselves, with a word on the others."""
    from agent_farm.farm.prune import find_candidates

    found = find_candidates(farm, stop=stop)
    for id, reason in found.stay.items():
        narrate(f"{id} stays: {printable(reason)}")
    if found.running:
        landed = f"{len(found.running)} landed builder{' is' if len(found.running) == 1 else 's are'}"
        narrate(f"{landed} still running.")
        narrate_hint(as_command("af", "prune", "--stop", *(record.id for record in found.running)))
    elif not found.chosen:
        narrate("Nothing to prune: no builder has both finished and landed.")
    return found.chosen


def _show(result: Result) -> None:
    if result.error:
        show_error(result.error, as_json=False)
        return
    if result.kept is None:
        answer(f"{result.id} would be removed")
        return
    kept = result.kept
    gone = f", with {kept.record.branch}" if kept.goes and kept.tip else ""
    answer(printable(f"{kept.record.id} removed{gone}"))
    if kept.files:
        narrate(f"  kept in the trash: {printable(_places(kept.files))}")
    if kept.left_out:
        narrate(f"  deleted (can be regenerated): {printable(_places(kept.left_out))}")


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
    expired = expire(current_farm(), parse_age(age))
    if as_json:
        answer_json(
            {
                "expired": [{"id": kept.record.id, "epoch": kept.epoch} for kept in expired.gone],
                "left": [str(path) for path in expired.left],
                "refused": [{"what": error.what, "why": error.why} for error in expired.busy],
            }
        )
        return 1 if expired.left or expired.busy else 0
    for kept in expired.gone:
        answer(f"{kept.record.id} of {_when(kept.epoch)} deleted for good")
    for error in expired.busy:
        show_error(error, as_json=False)
    for path in expired.left:
        narrate(f"{printable(str(path))} cannot be deleted: it holds files of another user.")
        narrate_hint(as_command("sudo", "rm", "-rf", path))
    if not (expired.gone or expired.busy or expired.left):
        narrate("Nothing is that old.")
    return 1 if expired.left or expired.busy else 0


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
@click.option(
    "--at",
    "epoch",
    type=int,
    metavar="EPOCH",
    help="Restore the removal made at EPOCH instead of the latest.",
)
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
    answer(printable(f"{record.id} restored to {record.worktree} on {record.branch}"))
    narrate_hint(f"af resume {record.id}")


def _list(id: str | None, as_json: bool) -> None:
    from agent_farm.farm.trash import list_kept

    kept = list_kept(current_farm(), id)
    if as_json:
        answer_json({"removed": [{**one.to_json(), "title": one.record.title} for one in kept]})
        return
    width = max((len(one.record.id) for one in kept), default=0)
    for one in kept:
        title = one.record.title
        short = title if len(title) <= 60 else f"{title[:59]}…"
        answer(printable(f"{one.record.id:{width}}  {one.epoch}  {_when(one.epoch)}  {short}"))
    if not kept:
        narrate("Nothing can be restored.")


def _when(epoch: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(epoch))

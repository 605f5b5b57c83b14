"""`af restore`: brings back branch, worktree, run files and record.

The record comes first, as `creating`, and says which removal is being undone. Until the worktree has left the
trash, an interrupted restore is undone; after that, it is completed.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import make_directory
from agent_farm.errors import AgentFarmError, NotFound, UsageError
from agent_farm.farm.deletion import delete_tree
from agent_farm.farm.farm import Farm
from agent_farm.farm.locks import lock_of
from agent_farm.farm.own_events import note
from agent_farm.farm.trash import Trashed, list_kept, load_kept
from agent_farm.git.checkout import BuilderTree, linked_tree
from agent_farm.git.keeping import admin_of, adopt, attach, bring_back_branch, put_away, take_out
from agent_farm.git.left_locks import drop_builders_locks
from agent_farm.git.worktrees import branch_checked_out_at, require_free
from agent_farm.launch import as_command
from agent_farm.ports import release_ports, reserve_ports

_RESTORING = "restoring "


def restore(farm: Farm, kept: Trashed) -> BuilderRecord:
    """The builder comes back `at_rest`."""
    id = kept.record.id
    with lock_of(farm, id):
        if load_kept(kept.directory) != kept:
            raise NotFound(f"{id} was expired or restored in the meantime", hint="af restore --list")
        record = _announce(farm, kept)
        try:
            return _complete(farm, kept, record)
        except BaseException:
            _undo(farm, kept, record)
            raise


def is_restoring(record: BuilderRecord) -> bool:
    return record.state == "creating" and (record.reason or "").startswith(_RESTORING)


def settle_restore(farm: Farm, record: BuilderRecord) -> list[str]:
    """Finish or undo an interrupted restore, and say what was done; the caller holds its lock."""
    name = (record.reason or "").removeprefix(_RESTORING)
    kept = next((kept for kept in list_kept(farm, record.id) if kept.directory.name == name), None)
    if kept is None:
        raise AgentFarmError(
            f"{record.id}: its restore was interrupted, and {name} is not in the trash", hint="af doctor"
        )
    if os.path.lexists(kept.worktree):
        _undo(farm, kept, record)
        return [f"{record.id}: its restore was cut short; it is undone"]
    try:
        _complete(farm, kept, record, again=True)
    except AgentFarmError as error:
        _undo(farm, kept, record)
        return [f"{record.id}: its restore was cut short: {error.what}"]
    return [f"{record.id}: its restore was cut short; it is finished"]


def _announce(farm: Farm, kept: Trashed) -> BuilderRecord:
    """Record the intent first, so that a crash shows what was begun."""
    old, path = kept.record, farm.paths.worktree(kept.record.id)
    with farm.registry.edit() as records:
        if old.id in records.ids:
            raise UsageError(
                f"A builder {old.id} already exists",
                why="Remove it first; what is restored comes back under the same id.",
                hint=f"af prune {old.id}",
            )
        tip = farm.repository.branch_commit(old.branch)
        _require_free_branch(farm, kept, tip)
        require_free(path)
        if admin_of(farm.repository, kept.admin, kept.worktree) is None:
            raise AgentFarmError(
                f"git does not know the worktree of {old.id} any more",
                why=f"Its entry in {farm.repository.common_dir / 'worktrees'} is gone; its files are there.",
                hint=as_command("ls", kept.worktree),
            )
        reason = f"{_RESTORING}{kept.directory.name}"
        record = replace(old, state="creating", reason=reason, worktree=str(path))
        records[old.id] = record
    return record


def _require_free_branch(farm: Farm, kept: Trashed, tip: str | None) -> None:
    old = kept.record
    place = branch_checked_out_at(farm.repository, old.branch)
    if place is not None and os.path.realpath(place) != os.path.realpath(kept.worktree):
        raise UsageError(
            f"The branch {old.branch} is checked out in {place}",
            hint=as_command("git", "-C", place, "switch", "--detach"),
        )
    if tip not in (None, kept.tip):
        raise UsageError(
            f"The branch {old.branch} has moved on since {old.id} was removed",
            why=f"It is at {str(tip)[:10]}, and was at {str(kept.tip)[:10]}.",
            hint=as_command("git", "-C", farm.root, "branch", "-m", old.branch, f"{old.branch}-later"),
        )


def _complete(farm: Farm, kept: Trashed, record: BuilderRecord, *, again: bool = False) -> BuilderRecord:
    """Each step can be repeated."""
    old, path = kept.record, farm.paths.worktree(kept.record.id)
    if os.path.lexists(kept.worktree):
        adopt(farm.repository, kept.admin, kept.worktree)
    make_directory(farm.paths.worktrees)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
    take_out(farm.repository, kept.worktree, path)
    tree = linked_tree(farm.repository, path)
    if again:
        drop_builders_locks(tree, [f"refs/heads/{record.branch}"], head=True)
    _bring_back_branch(farm, kept, tree)
    if kept.run.is_dir() and not farm.paths.run(old.id).exists():
        make_directory(farm.paths.runs)
        os.rename(kept.run, farm.paths.run(old.id))
    ports = reserve_ports(farm.root, old.id, len(old.ports))
    record = replace(old.at_rest("restored"), worktree=record.worktree, ports=ports)
    farm.registry.put(record)
    note(farm, record, "restored")
    delete_tree(kept.directory)
    return record


def _bring_back_branch(farm: Farm, kept: Trashed, tree: BuilderTree) -> None:
    """A branch that exists is at the same commit, or somebody has committed to it since."""
    now, branch = tree.checked_out(), kept.record.branch
    if now.branch is not None:  # done already
        return
    if kept.tip:
        bring_back_branch(farm.repository, branch, kept.tip, kept.branch_log, kept.settings)
    if kept.attached and now.commit == kept.head:  # otherwise somebody has committed since
        attach(tree, branch)


def _undo(farm: Farm, kept: Trashed, record: BuilderRecord) -> None:
    """Undo, back to the removal; once HEAD names the branch again, it can only be completed."""
    path = farm.paths.worktree(record.id)
    if not os.path.lexists(kept.worktree):
        if linked_tree(farm.repository, path).checked_out().branch is not None or not kept.attached:
            return
        put_away(farm.repository, path, kept.worktree)
    release_ports(farm.root, [record.id])
    farm.registry.drop(record.id)
    farm.paths.builder_lock(record.id).unlink(missing_ok=True)

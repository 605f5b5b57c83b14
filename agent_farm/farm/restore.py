"""`af restore`: branch, worktree, uncommitted state, run files and record, as they were.

The record comes first, as `creating`, and says which removal is being undone. Until the mark "state-is-back"
nothing has left the trash, and a restore that was cut short is undone; after it, it is carried to its end.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import AgentFarmError, NotFound, UsageError, nearest
from agent_farm.farm.farm import Farm
from agent_farm.farm.history import note
from agent_farm.farm.holding import lock_of
from agent_farm.farm.trash import Kept, delete_tree, list_kept, move, set_aside, thin_out
from agent_farm.git.half_made import drop_half_made, drop_stale_ref_lock
from agent_farm.git.restoring import restore_state
from agent_farm.git.salvage import Salvaged, load_salvage
from agent_farm.git.worktrees import (
    add_worktree,
    admin_directory,
    belongs_here,
    branch_checked_out_at,
    delete_branch,
    drop_admin_entry,
    remove_worktree,
    require_free,
)
from agent_farm.launch import as_command
from agent_farm.ports import release_ports, reserve_ports

_RESTORING = "restoring "
_STATE_IS_BACK = "state-is-back"


def find_kept(farm: Farm, id: str, epoch: int | None) -> Kept:
    """The newest removal of that builder, or the one at `epoch`."""
    found = list_kept(farm, id)
    if epoch is not None:
        found = [kept for kept in found if kept.epoch == epoch]
    if found:
        return found[0]
    if id in farm.registry.read() and epoch is None:
        raise NotFound(f"{id} is not removed", why="It is there.", hint=as_command("af", "status", id))
    known = sorted({kept.record.id for kept in list_kept(farm)})
    close = nearest(id, known)
    raise NotFound(
        f"No removed builder {id}" + (f" at {epoch}" if epoch is not None else ""),
        why=f"There are: {', '.join(known)}" if known else "None was removed, or all were expired.",
        hint=f"af restore {close}" if close else "af restore --list",
    )


def restore(farm: Farm, kept: Kept) -> BuilderRecord:
    """The builder is back as `stopped`; `af resume` continues its conversation."""
    with lock_of(farm, kept.record.id) as lock:
        salvaged = load_salvage(farm.root, kept.ref)
        record = _announce(farm, kept, salvaged)
        try:
            _make(farm, kept, record, salvaged, lock)
            return _complete(farm, kept)
        except BaseException:
            settle_restore(farm, record)
            raise


def is_restoring(record: BuilderRecord) -> bool:
    return record.state == "creating" and (record.reason or "").startswith(_RESTORING)


def settle_restore(farm: Farm, record: BuilderRecord) -> list[str]:
    """Finish or undo a restore that was cut short; the caller holds its lock. Says what was done."""
    name = (record.reason or "").removeprefix(_RESTORING)
    kept = next((kept for kept in list_kept(farm, record.id) if kept.directory.name == name), None)
    if kept is not None and (kept.directory / _STATE_IS_BACK).exists():
        _complete(farm, kept)
        return [f"{record.id}: its restore was cut short; it is finished"]
    done = _undo(farm, record, kept)
    return [f"{record.id}: its restore was cut short; it is undone", *done]


def _announce(farm: Farm, kept: Kept, salvaged: Salvaged) -> BuilderRecord:
    """Intent before the effect: whoever finds this record knows what was begun."""
    old = kept.record
    with farm.registry.edit() as records:
        if old.id in records:
            raise UsageError(
                f"There is a builder {old.id} already",
                why="Remove it first; what is restored comes back under the same id.",
                hint=f"af prune {old.id}",
            )
        tip = farm.repository.branch_commit(old.branch)
        _require_free_branch(farm, old, tip, salvaged.head)
        require_free(old.worktree_path)
        record = replace(
            old, state="creating", reason=f"{_RESTORING}{kept.directory.name}", new_branch=tip is None
        )
        records[old.id] = record
    return record


def _require_free_branch(farm: Farm, old: BuilderRecord, tip: str | None, head: str) -> None:
    place = branch_checked_out_at(farm.repository, old.branch)
    if place is not None:
        raise UsageError(
            f"The branch {old.branch} is checked out in {place}",
            hint=as_command("git", "-C", place, "switch", "--detach"),
        )
    if tip not in (None, head):
        raise UsageError(
            f"The branch {old.branch} has moved on since {old.id} was removed",
            why=f"It is at {str(tip)[:10]}, and was at {head[:10]}.",
            hint=as_command("git", "-C", farm.root, "branch", "-m", old.branch, f"{old.branch}-later"),
        )


def _make(farm: Farm, kept: Kept, record: BuilderRecord, salvaged: Salvaged, lock: int) -> None:
    add_worktree(
        farm.repository,
        record.worktree_path,
        record.branch,
        salvaged.head,
        lock_path=farm.paths.worktree_lock,
        builder_lock_fd=lock,
        new_branch=record.new_branch,
    )
    restore_state(kept.ref, record.worktree_path)
    replace_file(kept.directory / _STATE_IS_BACK, "")


def _complete(farm: Farm, kept: Kept) -> BuilderRecord:
    """What is left to do once git's part is back; each step may be done again."""
    old = kept.record
    thin_out(kept)  # the removal may have been killed in the middle of it, with files on both sides
    _bring_back_files(kept, old.worktree_path)
    _bring_back_submodules(kept, old.worktree_path)
    if kept.run.is_dir() and not farm.paths.run(old.id).exists():
        make_directory(farm.paths.runs)
        os.rename(kept.run, farm.paths.run(old.id))
    ports = reserve_ports(farm.root, old.id, len(old.ports))
    record = replace(old, state="stopped", reason="restored", ports=ports)
    with farm.registry.edit() as records:
        records[old.id] = record
    note(farm, record, "restored")
    delete_tree(kept.directory)
    return record


def _undo(farm: Farm, record: BuilderRecord, kept: Kept | None) -> list[str]:
    """The removal is as it was. What stands in the worktree is set aside, not judged."""
    path, done = record.worktree_path, []
    with file_lock(farm.paths.worktree_lock):
        drop_half_made(farm.repository, path)
    if record.new_branch:
        drop_stale_ref_lock(farm.repository, record.branch)
    if belongs_here(farm.repository, path):
        aside = set_aside(farm, "half", record.id)
        remove_worktree(farm.repository, path, trash=aside)
        done.append(f"its half-made worktree is in {aside}")
    elif path.is_dir() and not any(path.iterdir()):
        path.rmdir()
    if not os.path.lexists(path):
        drop_admin_entry(farm.repository, path)
    tip = farm.repository.branch_commit(record.branch)
    if tip is not None and record.new_branch and kept is not None:
        try:
            delete_branch(farm.repository, record.branch, load_salvage(farm.root, kept.ref).head)
        except AgentFarmError:  # somebody committed to it
            done.append(f"{record.branch} is kept, at {tip[:10]}")
    release_ports(farm.root, [record.id])
    with farm.registry.edit() as records:
        records.pop(record.id, None)
    farm.paths.builder_lock(record.id).unlink(missing_ok=True)
    return done


def _bring_back_files(kept: Kept, worktree: Path) -> None:
    """What git could not keep; a file that is there already is not overwritten."""
    if not kept.worktree.is_dir():
        return
    for directory, folders, files in os.walk(kept.worktree):
        place = worktree / os.path.relpath(directory, kept.worktree)
        for name in [*folders, *files]:
            target = place / name
            if not os.path.lexists(target):
                make_directory(target.parent, mode=0o755)
                move(Path(directory) / name, target)
        folders[:] = [name for name in folders if (Path(directory) / name).is_dir()]


def _bring_back_submodules(kept: Kept, worktree: Path) -> None:
    """Their git directories live in the worktree's own, and with them commits that no remote has."""
    modules, admin = kept.directory / "admin" / "modules", admin_directory(worktree)
    if modules.is_dir() and admin is not None and not (admin / "modules").exists():
        os.rename(modules, admin / "modules")

"""`af restore`: branch, worktree, uncommitted state, run files and record, as they were."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, make_directory
from agent_farm.errors import NotFound, UsageError, nearest
from agent_farm.farm.farm import Farm
from agent_farm.farm.stop import LOCK_SECONDS
from agent_farm.farm.trash import Kept, list_kept
from agent_farm.git.restoring import restore_state
from agent_farm.git.salvage import load_salvage
from agent_farm.git.worktrees import add_worktree, admin_directory, branch_checked_out_at
from agent_farm.ports import reserve_ports


def find_kept(farm: Farm, id: str, epoch: int | None) -> Kept:
    """The newest removal of that builder, or the one at `epoch`."""
    found = list_kept(farm, id)
    if epoch is not None:
        found = [kept for kept in found if kept.epoch == epoch]
    if found:
        return found[0]
    known = sorted({kept.record.id for kept in list_kept(farm)})
    close = nearest(id, known)
    raise NotFound(
        f"No removed builder {id}" + (f" at {epoch}" if epoch is not None else ""),
        why=f"There are: {', '.join(known)}" if known else "None was removed, or all were expired.",
        hint=f"af restore {close}" if close else "af restore --list",
    )


def restore(farm: Farm, kept: Kept) -> BuilderRecord:
    """The builder is back as `stopped`; `af resume` continues its conversation."""
    old = kept.record
    with file_lock(farm.paths.builder_lock(old.id), wait=LOCK_SECONDS, inherit=True) as lock:
        _require_free(farm, old)
        salvaged = load_salvage(farm.root, kept.ref)
        tip = farm.repository.branch_commit(old.branch)
        add_worktree(
            farm.repository,
            old.worktree_path,
            old.branch,
            tip or salvaged.head,
            lock_path=farm.paths.worktree_lock,
            builder_lock_fd=lock,
            new_branch=tip is None,
        )
        restore_state(kept.ref, old.worktree_path)
        _bring_back_files(kept, old.worktree_path)
        _bring_back_submodules(kept, old.worktree_path)
        if kept.run.is_dir():
            make_directory(farm.paths.runs)
            os.rename(kept.run, farm.paths.run(old.id))
        ports = reserve_ports(farm.root, old.id, len(old.ports))
        record = replace(old, state="stopped", reason="restored", ports=ports)
        with farm.registry.edit() as records:
            records[old.id] = record
    shutil.rmtree(kept.directory, ignore_errors=True)
    return record


def _require_free(farm: Farm, record: BuilderRecord) -> None:
    if record.id in farm.registry.read():
        raise UsageError(
            f"There is a builder {record.id} already",
            why="Remove it first; what is restored comes back under the same id.",
            hint=f"af prune {record.id}",
        )
    place = branch_checked_out_at(farm.repository, record.branch)
    if place is not None:
        raise UsageError(f"The branch {record.branch} is checked out in {place}", hint="git worktree list")


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
                os.rename(Path(directory) / name, target)
        folders[:] = [name for name in folders if (Path(directory) / name).is_dir()]


def _bring_back_submodules(kept: Kept, worktree: Path) -> None:
    """Their git directories live in the worktree's own, and with them commits that no remote has."""
    modules, admin = kept.directory / "admin" / "modules", admin_directory(worktree)
    if modules.is_dir() and admin is not None:
        os.rename(modules, admin / "modules")

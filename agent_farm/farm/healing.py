"""Finishes or undoes half-made builders, without guessing and without removing what a person made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, LockTaken, in_one_line
from agent_farm.farm.deletion import delete_tree
from agent_farm.farm.farm import Farm
from agent_farm.farm.panes import find_pane
from agent_farm.farm.restoring import is_restoring, settle_restore
from agent_farm.farm.waiting import requeue
from agent_farm.git.half_made import drop_half_made, drop_stale_ref_lock, own_content
from agent_farm.git.reconnecting import repair_worktree
from agent_farm.git.worktree_removal import (
    bring_back_dropped,
    delete_branch,
    drop_registration,
    drop_worktree,
)
from agent_farm.git.worktrees import belongs_here
from agent_farm.paths import RunPaths
from agent_farm.ports import release_ports
from agent_farm.processes import end_runs

_NAMED = 5  # how many of somebody's files a message names


class SettledStart(Struct, frozen=True):
    """What became of a builder whose spawn was interrupted; unchanged if not `done`."""

    text: str
    done: bool = True


def settle_interrupted_starts(
    farm: Farm, records: Mapping[str, BuilderRecord], *, wait: float = 0
) -> list[SettledStart]:
    """Finish or undo every builder whose maker is dead; says what was done.

    The maker and its git children hold the builder's lock; while one of them lives, the builder is left
    alone.
    """
    done = list[SettledStart]()
    for record in records.values():
        if record.state != "creating":
            continue
        with suppress(LockTaken), file_lock(farm.paths.builder_lock(record.id), wait=wait):
            current = farm.registry.read().get(record.id)
            if current is not None and current.state == "creating":
                done += _try_to_settle(farm, current)
    return done


def _try_to_settle(farm: Farm, record: BuilderRecord) -> list[SettledStart]:
    """A builder that cannot be settled (because the disk is full, say) must not block other commands."""
    try:
        return [SettledStart(text) for text in _settle(farm, record)]
    except (AgentFarmError, OSError) as error:
        why = in_one_line(error)
        return [
            SettledStart(f"{record.id}: its start was interrupted and cannot be undone: {why}", done=False)
        ]


def _settle(farm: Farm, record: BuilderRecord) -> list[str]:
    if is_restoring(record):
        return settle_restore(farm, record)
    found = find_pane(record)
    if not found.known:
        return []  # it may have a session that cannot be seen
    pane = found.pane
    if pane is not None and not pane.dead:
        farm.registry.put(record.with_state("running"))
        return [f"{record.id}: its start was cut short, but it runs"]
    return [f"{record.id}: its start was cut short; it is undone", *remove_traces(farm, record)]


def remove_traces(farm: Farm, record: BuilderRecord) -> list[str]:
    """Undo a spawn, however far it got. A builder with somebody's work in it stays, as failed."""
    found = find_pane(record)
    if found.pane is not None:
        found.server.kill_session(found.pane)
    end_runs([record.run])
    bring_back_dropped(record.worktree_path)
    with file_lock(farm.paths.worktree_lock):
        drop_half_made(farm.repository, record.worktree_path)
        if not belongs_here(farm.repository, record.worktree_path):
            with suppress(AgentFarmError):  # git was killed while it moved a ready worktree here
                repair_worktree(farm.repository, record.worktree_path)
    if record.new_branch:
        drop_stale_ref_lock(farm.repository, record.branch)
    work = _own_work(farm, record)
    kept = [] if work else _remove_tree(farm, record)
    if work := work or _own_work(farm, record):
        farm.registry.put(record.with_state("failed", f"its start was cut short; it has {work}"))
        return [f"{record.id} is kept as failed: it has {work}"]
    _remove_branch(farm, record)
    _empty_run(farm.run(record.id))
    release_ports(farm.root, [record.id])
    if not requeue(farm, record.id):
        farm.registry.drop(record.id)
    farm.paths.builder_lock(record.id).unlink(missing_ok=True)
    return kept


def _empty_run(run: RunPaths) -> None:
    """Keep proof and review, which a builder of another machine placed here may already have."""
    with suppress(OSError):
        for path in run.directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path not in run.of_the_work:
                path.unlink(missing_ok=True)
        run.directory.rmdir()


def _own_work(farm: Farm, record: BuilderRecord) -> str | None:
    """Files and commits that do not come from the checkout: somebody's work."""
    path, tip = record.worktree_path, _tip(farm, record)
    if record.new_branch and tip != record.base_commit:
        return f"commits on {record.branch}"
    if not belongs_here(farm.repository, path):
        return None
    return ", ".join(own_content(farm.repository, path, tip)[:_NAMED]) or None


def _tip(farm: Farm, record: BuilderRecord) -> str:
    return farm.repository.branch_commit(record.branch) or record.base_commit


def _remove_tree(farm: Farm, record: BuilderRecord) -> list[str]:
    path = record.worktree_path
    if not path.exists():
        drop_registration(farm.repository, path)
        return []
    if not belongs_here(farm.repository, path):
        if any(path.iterdir()):
            return [f"{path} is kept: it is not a worktree of this repository"]
        path.rmdir()
        return []
    drop_worktree(farm.repository, path, _tip(farm, record), delete=delete_tree)
    return []


def _remove_branch(farm: Farm, record: BuilderRecord) -> None:
    """Delete only a branch that this spawn made; git refuses if it has moved."""
    if record.new_branch and farm.repository.branch_commit(record.branch):
        with suppress(AgentFarmError):
            delete_branch(farm.repository, record.branch, record.base_commit)

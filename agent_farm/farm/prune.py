"""`af prune`: remove builders, and never a line of work that exists nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.evidence import Evidence, gather, require_removable
from agent_farm.farm.farm import Farm
from agent_farm.farm.holding import hold
from agent_farm.farm.stop import end_processes
from agent_farm.farm.trash import Kept, new_place, store_kept, thin_out
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.ignoring import ignored_entries, same_content
from agent_farm.git.nested import nested_repositories
from agent_farm.git.salvage import salvage
from agent_farm.git.worktrees import delete_branch, find_worktree, remove_worktree
from agent_farm.ports import release_ports

# Directories that tools make again; everything else that git ignores is kept until it is expired.
REGENERATED = frozenset(
    {
        "node_modules", "bower_components", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache",
        ".ruff_cache", ".hypothesis", ".tox", ".nox", ".eggs", "target", "dist", "build", ".next", ".nuxt",
        ".turbo", ".parcel-cache", ".gradle", ".cache", "coverage", ".terraform", "Pods", "DerivedData",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is gone, and what of it is kept where."""

    id: str
    branch: str | None
    ref: str
    kept: tuple[str, ...]


def prune(
    farm: Farm, record: BuilderRecord, *, discard_changes: bool = False, discard_commits: bool = False
) -> Pruned:
    """Remove one builder; WorkWouldBeLost with the evidence when that would lose something."""
    with hold(farm, record.id) as record:
        require_prunable(farm, record, discard_changes=discard_changes, discard_commits=discard_commits)
        end_processes(farm, record)
        # Its shell may have written something until it ended.
        require_prunable(farm, record, discard_changes=discard_changes, discard_commits=discard_commits)
        return _remove(farm, record)


def require_prunable(
    farm: Farm, record: BuilderRecord, *, discard_changes: bool = False, discard_commits: bool = False
) -> None:
    """WorkWouldBeLost with the evidence, when removing the builder now would lose something."""
    evidence = gather(farm, record)
    require_removable(record, evidence, discard_changes=discard_changes, discard_commits=discard_commits)


def finished_and_landed(farm: Farm) -> tuple[list[BuilderRecord], dict[str, Evidence]]:
    """Those that `af prune` takes by itself, and what keeps the other finished ones."""
    chosen, others = [], {}
    for record in farm.records().values():
        evidence = gather(farm, record)
        if evidence.has_landed:
            chosen.append(record)
        elif evidence.status.is_finished:
            others[record.id] = evidence
    return chosen, others


def finish_removal(farm: Farm, kept: Kept) -> Pruned:
    """All that follows once the removal is on record; may be begun again after a crash."""
    record = kept.record
    if find_worktree(farm.repository, record.worktree_path) is not None:
        remove_worktree(farm.repository, record.worktree_path, trash=kept.directory)
    branch = _remove_branch(farm, record, kept.tip)
    if farm.paths.run(record.id).is_dir():
        os.rename(farm.paths.run(record.id), kept.run)
    with farm.registry.edit() as records:
        records.pop(record.id, None)
    release_ports(farm.root, [record.id])
    _require_gone(farm, kept, branch)
    thin_out(kept)
    farm.paths.builder_lock(record.id).unlink(missing_ok=True)
    farm.paths.delivery_lock(record.id).unlink(missing_ok=True)
    return Pruned(record.id, branch, kept.ref, kept.remaining)


def _remove(farm: Farm, record: BuilderRecord) -> Pruned:
    place = new_place(farm, record)
    tip = farm.repository.branch_commit(record.branch)
    salvage(record.worktree_path, place.ref, branch_tip=tip)
    kept = replace(place, tip=tip, remaining=tuple(_not_in_git(farm, record)))
    store_kept(kept)
    return finish_removal(farm, kept)


def _not_in_git(farm: Farm, record: BuilderRecord) -> list[str]:
    """Paths the salvage does not hold: nested repositories, and ignored files that are no copies."""
    worktree = record.worktree_path
    nested = [one.path for one in nested_repositories(worktree)]
    ignored = [path.rstrip("/") for path in ignored_entries(worktree)]
    own = [
        path
        for path in ignored
        if os.path.basename(path) not in REGENERATED and not same_content(worktree / path, farm.root / path)
    ]
    chosen = sorted({*nested, *own})
    return [path for path in chosen if not any(path.startswith(f"{other}/") for other in chosen)]


def _remove_branch(farm: Farm, record: BuilderRecord, tip: str | None) -> str | None:
    """The branch `af` made; one that was the user's before stays."""
    if tip is None or not (record.new_branch or record.branch.startswith("builder/")):
        return None
    if farm.repository.branch_commit(record.branch) is not None:
        delete_branch(farm.repository, record.branch, tip)
    return record.branch


def _require_gone(farm: Farm, kept: Kept, branch: str | None) -> None:
    """Checked, not assumed, before anything says "removed"."""
    record, left = kept.record, []
    if record.worktree_path.exists() or find_worktree(farm.repository, record.worktree_path):
        left.append(f"worktree {record.worktree}")
    if branch is not None and farm.repository.branch_commit(branch):
        left.append(f"branch {branch}")
    if record.id in farm.registry.read():
        left.append("record")
    if resolve_commits(farm.repository, [kept.ref])[kept.ref] is None:
        left.append(f"no salvage at {kept.ref}")
    if left:
        raise AgentFarmError(f"{record.id} is not removed whole", evidence=left, hint="af doctor --fix")

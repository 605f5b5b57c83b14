"""`af prune`: remove builders, and never a line of work that exists nowhere else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, WorkWouldBeLost
from agent_farm.farm.evidence import Evidence, gather, require_removable
from agent_farm.farm.farm import Farm
from agent_farm.farm.history import note
from agent_farm.farm.holding import hold
from agent_farm.farm.listing import read_status
from agent_farm.farm.stop import end_processes
from agent_farm.farm.tool_made import LARGE, is_tool_made
from agent_farm.farm.trash import Kept, new_place, store_kept, thin_out
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.ignoring import ignored_entries, same_content
from agent_farm.git.nested import nested_repositories
from agent_farm.git.salvage import salvage
from agent_farm.git.worktrees import delete_branch, find_worktree, remove_worktree
from agent_farm.launch import as_command
from agent_farm.paths import IGNORED_BY_GIT
from agent_farm.ports import release_ports


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is gone, what of it is kept beside the salvage, and what a tool has to make again."""

    id: str
    branch: str | None
    ref: str
    kept: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def prune(
    farm: Farm,
    record: BuilderRecord,
    *,
    discard_changes: bool = False,
    discard_commits: bool = False,
    stop: bool = False,
) -> Pruned:
    """Remove one builder; WorkWouldBeLost with the evidence when that would lose something.

    With `stop` one that runs is stopped first, unless it is refused anyway: then it goes on.
    """
    waived = {"discard_changes": discard_changes, "discard_commits": discard_commits}
    with hold(farm, record.id) as record:
        require_prunable(farm, record, stop=stop, **waived)
        runs = stop and not read_status(farm, record).is_finished
        if runs:
            record = _mark_stopped(farm, record)
        end_processes(farm, record)
        if runs:
            note(farm, record, "stopped", "by af prune --stop")
        # Its runtime or its shell may have written something until it ended.
        require_prunable(farm, record, **waived)
        return _remove(farm, record)


def require_prunable(
    farm: Farm,
    record: BuilderRecord,
    *,
    discard_changes: bool = False,
    discard_commits: bool = False,
    stop: bool = False,
) -> None:
    """WorkWouldBeLost with the evidence, when removing the builder now would lose something."""
    evidence = gather(farm, record, will_stop=stop)
    require_removable(record, evidence, discard_changes=discard_changes, discard_commits=discard_commits)


def _mark_stopped(farm: Farm, record: BuilderRecord) -> BuilderRecord:
    """Before it ends: what a crash leaves behind is a stopped builder, and no lost one."""
    with farm.registry.edit() as records:
        records[record.id] = record.with_state("stopped", "by af prune --stop")
        return records[record.id]


def finished_and_landed(farm: Farm) -> tuple[list[BuilderRecord], dict[str, Evidence]]:
    """Those that `af prune` takes by itself, and what keeps the other finished ones."""
    chosen, others = [], {}
    for record in farm.records().values():
        evidence = gather(farm, record)
        if evidence.has_landed and not evidence.status.cut_short:
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
    return Pruned(record.id, branch, kept.ref, kept.remaining, kept.left_out)


def _remove(farm: Farm, record: BuilderRecord) -> Pruned:
    tip = farm.repository.branch_commit(record.branch)
    remaining, left_out = _not_in_git(farm, record)
    _require_movable(record, remaining)
    place = new_place(farm, record)
    salvage(record.worktree_path, place.ref, branch_tip=tip)
    kept = replace(place, tip=tip, remaining=remaining, left_out=left_out)
    store_kept(kept)
    return finish_removal(farm, kept)


def _not_in_git(farm: Farm, record: BuilderRecord) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the salvage does not hold: paths to keep, and directories that their tool makes again.

    Kept are nested repositories and ignored files that are no copies; all of it is renamed, never read.
    """
    worktree = record.worktree_path
    ignored = [path.rstrip("/") for path in ignored_entries(worktree)]
    left_out = [path for path in ignored if is_tool_made(worktree / path)]
    own = [path for path in ignored if path not in left_out and not _is_copy(farm, worktree, path)]
    # In a worktree these are nobody's but the builder's, and git is told to ignore them.
    own += [name for line in IGNORED_BY_GIT if os.path.lexists(worktree / (name := line.strip("/")))]
    nested = [one.path for one in nested_repositories(worktree)]
    chosen = sorted({*nested, *own})
    outermost = [path for path in chosen if not any(path.startswith(f"{other}/") for other in chosen)]
    return tuple(outermost), tuple(left_out)


def _require_movable(record: BuilderRecord, paths: Sequence[str]) -> None:
    """While everything stands: a directory of another user (a container's, say) cannot be renamed."""
    foreign = sorted(
        {
            str(one)
            for path in paths
            for one in (record.worktree_path / path, (record.worktree_path / path).parent)
            if one.is_dir() and not one.is_symlink() and one.stat().st_uid != os.geteuid()
            if not os.access(one, os.W_OK)
        }
    )
    if foreign:
        raise WorkWouldBeLost(
            f"{record.id} is not removed: it has directories that only another user may write",
            evidence=foreign,
            hint=as_command("sudo", "chown", "-R", str(os.geteuid()), foreign[0]),
        )


def _is_copy(farm: Farm, worktree: Path, path: str) -> bool:
    """Whether the main checkout has the same. What tools write into is large, and kept without comparing."""
    if os.path.basename(path) in LARGE and (worktree / path).is_dir():
        return False
    return same_content(worktree / path, farm.root / path)


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

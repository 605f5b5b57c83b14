"""Removing a builder, step by step, and what becomes of a removal that was cut short.

The worktree is renamed into the trash as it is, and looked at once more where nobody expects it. Until the
removal is on record as `removed`, a crash or an error undoes it; from then on it is carried to its end.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.deletion import delete_tree
from agent_farm.farm.evidence import Evidence, tip_of
from agent_farm.farm.farm import Farm
from agent_farm.farm.locks import lock_of
from agent_farm.farm.tool_made import is_tool_made
from agent_farm.farm.trash import Kept, load_kept, new_place, store_kept, with_state
from agent_farm.git.changes import tree_state
from agent_farm.git.checkout import BuilderTree, linked_tree, main_checkout
from agent_farm.git.git_process import GitError
from agent_farm.git.ignoring import ignored_entries
from agent_farm.git.keeping import (
    admin_of,
    branch_log,
    branch_settings,
    bundle,
    drop_ref,
    let_go,
    lonely_commits,
    put_away,
    take_out,
)
from agent_farm.git.left_locks import drop_builders_locks
from agent_farm.git.nested import holds_repository
from agent_farm.git.worktrees import forget_settings
from agent_farm.launch import as_command
from agent_farm.paths import IGNORED_BY_GIT
from agent_farm.ports import release_ports


def remove(farm: Farm, record: BuilderRecord, evidence: Evidence) -> Kept | None:
    """The worktree in the trash and the removal on record; None, and nothing done, when it has changed."""
    assert evidence.tree is not None  # else something stood against removing
    kept = new_place(farm, record, evidence.tree.git_dir.name)
    try:
        store_kept(kept)
        put_away(farm.repository, evidence.tree.path, kept.worktree)
        tree = linked_tree(farm.repository, kept.worktree)
        if _is_as_seen(farm, record, tree, evidence):
            return _decide(farm, kept, tree, evidence)
    except BaseException:
        _undo(farm, kept)
        raise
    _undo(farm, kept)
    return None


def _is_as_seen(farm: Farm, record: BuilderRecord, tree: BuilderTree, evidence: Evidence) -> bool:
    """Whether it holds nothing that was not looked at when the removal was allowed."""
    now = tree_state(tree, each_file=True)
    tip = tip_of(farm, record, now)
    seen = {*evidence.changed, *evidence.untracked}
    same = (now.head, tip) == (evidence.head, evidence.tip) and not now.operation and not now.unread
    return same and {*now.dirty, *now.untracked} <= seen


def _decide(farm: Farm, kept: Kept, tree: BuilderTree, evidence: Evidence) -> Kept:
    """All that a restore needs is stored; what git would forget has a ref."""
    branch = kept.record.branch
    commits = lonely_commits(tree, branch, [name for name in (evidence.head, evidence.tip) if name])
    if evidence.tip and evidence.tip != evidence.head and kept.goes:
        commits.append(evidence.tip)
    if commits:
        tree.run("update-ref", kept.ref, bundle(tree, commits))
    log = branch_log(tree.common_dir, branch)
    if log.is_file():
        shutil.copyfile(log, kept.branch_log)
    ignored = [path.rstrip("/") for path in ignored_entries(tree)]
    left_out = [path for path in ignored if _is_made_again(tree, path)]
    # In a worktree these are nobody's but the builder's, and git is told to ignore them.
    ours = [name for line in IGNORED_BY_GIT if os.path.lexists(tree.path / (name := line.strip("/")))]
    own = {*evidence.changed, *evidence.untracked, *ignored, *ours} - set(left_out)
    return with_state(
        kept,
        is_removed=True,
        head=evidence.head,
        attached=tree.checked_out().branch is not None,
        tip=evidence.tip,
        settings=tuple(branch_settings(farm.repository, branch)),
        salvage=kept.ref if commits else None,
        files=tuple(sorted(path.rstrip("/") for path in own)),
        left_out=tuple(left_out),
    )


def _is_made_again(tree: BuilderTree, path: str) -> bool:
    place = tree.path / path
    return is_tool_made(place) and _is_inside(tree.path, place) and not holds_repository(place)


def _is_inside(root: os.PathLike[str], place: os.PathLike[str]) -> bool:
    """Not by way of a link."""
    return os.path.realpath(place) == os.path.join(os.path.realpath(root), os.path.relpath(place, root))


def settle_removal(farm: Farm, kept: Kept) -> str:
    """Undo one that was cut short, or carry it to its end. The caller holds the builder's lock."""
    current = load_kept(kept.directory)
    if current is None:
        return f"{kept.record.id} is settled"
    if current.is_removed:
        tree = linked_tree(farm.repository, current.worktree)
        drop_builders_locks(tree, [f"refs/heads/{current.record.branch}"], head=True)
        finish(farm, current)
        return f"{kept.record.id} is removed; af restore {kept.record.id} brings it back"
    _undo(farm, current)
    return f"the removal of {kept.record.id} is undone"


def settle_alone(farm: Farm, kept: Kept) -> str:
    with lock_of(farm, kept.record.id):
        return settle_removal(farm, kept)


def _undo(farm: Farm, kept: Kept) -> None:
    """The builder as it was; a removal that is on record by now is left for whoever finishes it."""
    current = load_kept(kept.directory)
    if current is not None and current.is_removed:
        return
    path = farm.paths.worktree(kept.record.id)
    take_out(farm.repository, kept.worktree, path)
    if os.path.lexists(kept.worktree):
        raise AgentFarmError(
            f"{kept.record.id} was not removed; its worktree is in {kept.worktree}",
            why=f"{path} is taken by something else.",
            hint=as_command("ls", "-ld", path),
        )
    drop_builders_locks(main_checkout(farm.repository), [kept.ref], head=False)
    drop_ref(farm.repository, kept.ref)
    shutil.rmtree(kept.directory)


def finish(farm: Farm, kept: Kept) -> Kept:
    """All that follows once the removal is on record; may be begun again after a crash."""
    record = kept.record
    goes = _let_go(farm, kept)
    if farm.paths.run(record.id).is_dir() and not kept.run.exists():
        os.rename(farm.paths.run(record.id), kept.run)
    farm.registry.drop(record.id)
    release_ports(farm.root, [record.id])
    _require_gone(farm, kept, goes)
    for path in kept.left_out:
        place = kept.worktree / path
        if is_tool_made(place) and _is_inside(kept.worktree, place):
            _delete_made(place, kept)
    farm.paths.builder_lock(record.id).unlink(missing_ok=True)
    farm.paths.delivery_lock(record.id).unlink(missing_ok=True)
    return kept


def _let_go(farm: Farm, kept: Kept) -> bool:
    """HEAD keeps the commit, and the branch goes if it is the builder's and has not moved."""
    tree, branch = linked_tree(farm.repository, kept.worktree), kept.record.branch
    goes = kept.goes and kept.tip is not None
    try:
        let_go(tree, kept.head, [f"delete refs/heads/{branch} {kept.tip}"] if goes else [])
    except GitError:
        tip = farm.repository.branch_commit(branch)
        if not goes or tip == kept.tip:
            raise
        let_go(tree, kept.head, [])  # it has moved, or went before a crash
        goes = tip is None
    if goes and kept.settings:
        forget_settings(farm.repository, branch)
    return goes


def _delete_made(place: Path, kept: Kept) -> None:
    """What cannot be deleted (another user made it) stays in the trash, and comes back."""
    with suppress(OSError):
        delete_tree(place, to=kept.directory)


def _require_gone(farm: Farm, kept: Kept, branch_goes: bool) -> None:
    """Checked, not assumed, before anything says "removed"."""
    record, left = kept.record, []
    if os.path.lexists(farm.paths.worktree(record.id)):
        left.append(f"worktree {farm.paths.worktree(record.id)}")
    if branch_goes and farm.repository.branch_commit(record.branch):
        left.append(f"branch {record.branch}")
    if record.id in farm.registry.read():
        left.append("record")
    if admin_of(farm.repository, kept.admin, kept.worktree) is None:
        left.append(f"git does not know {kept.worktree}")
    if left:
        raise AgentFarmError(f"{record.id} was only partly removed", evidence=left, hint="af doctor --fix")

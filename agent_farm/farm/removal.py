"""Removes a builder step by step, and settles removals that were interrupted.

The worktree is renamed into the trash, and checked once more where nobody writes to it. Until the removal is
recorded as `removed`, a crash or an error undoes it; from then on it is completed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, as_farm_error
from agent_farm.farm.deletion import delete_trees, set_out
from agent_farm.farm.evidence import Evidence, tip_of
from agent_farm.farm.farm import Farm
from agent_farm.farm.locks import lock_of
from agent_farm.farm.tool_made import is_tool_made
from agent_farm.farm.trash import Trashed, load_kept, new_place, store_kept, with_state
from agent_farm.git.asking import side_by_side
from agent_farm.git.changes import tree_state
from agent_farm.git.checkout import BuilderTree, linked_tree, main_checkout
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import GitError
from agent_farm.git.ignoring import ignored_entries
from agent_farm.git.keeping import (
    LeavingTree,
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
from agent_farm.git.registrations import registrations
from agent_farm.git.worktree_removal import forget_settings
from agent_farm.git.worktrees import list_worktrees
from agent_farm.paths import IGNORED_BY_GIT
from agent_farm.ports import release_ports


class Leaving(Struct, frozen=True):
    """A builder that may be removed, and the evidence for that."""

    record: BuilderRecord
    evidence: Evidence

    @property
    def seen(self) -> BuilderTree:
        assert self.evidence.tree is not None  # otherwise something spoke against the removal
        return self.evidence.tree


Found = dict[str, Trashed | AgentFarmError | None]


def remove(farm: Farm, leaving: Mapping[str, Leaving]) -> Found:
    """Move worktrees to the trash and record the removals; by builder, the result or what stood against it.

    None, with nothing done, if one has changed since its evidence was gathered.
    """
    begun = dict[str, Trashed]()
    found: Found = {}
    known = list(registrations(farm.repository.common_dir))
    try:
        for done, (id, one) in enumerate(leaving.items()):
            farm.step("Putting away", done, len(leaving))
            try:
                begun[id] = kept = new_place(farm, one.record, one.seen.git_dir.name)
                store_kept(kept)
                put_away(farm.repository, one.seen.path, kept.worktree, known)
            except (AgentFarmError, OSError) as error:
                found[id] = as_farm_error(error, f"{id} was not removed")
        away = {id: (one, begun[id]) for id, one in leaving.items() if id not in found}
        questions = {id: partial(_look_again, farm, *pair) for id, pair in away.items()}
        looks = side_by_side(questions, step=partial(farm.step, "Looking once more"))
        found |= {id: look for id, look in looks.items() if isinstance(look, AgentFarmError | None)}
        same = {id: look for id, look in looks.items() if isinstance(look, _Seen)}
        found |= _decide(farm, {id: (*away[id], look) for id, look in same.items()})
    except BaseException:
        for kept in begun.values():
            with suppress(AgentFarmError, OSError):  # only the error that led here is shown
                _undo(farm, kept)
        raise
    for id, kept in begun.items():
        if not isinstance(found[id], Trashed):
            try:
                _undo(farm, kept)
            except (AgentFarmError, OSError) as error:
                found[id] = as_farm_error(error, f"{id} was not removed")
    return found


class _Seen(Struct, frozen=True):
    tree: BuilderTree
    ignored: tuple[str, ...]


def _look_again(farm: Farm, one: Leaving, kept: Trashed) -> _Seen | None:
    """None if it contains anything that was not there when the removal was allowed."""
    tree, evidence = linked_tree(farm.repository, kept.worktree), one.evidence
    clean = not evidence.untracked  # then one question also tells whether git ignores anything there
    now = tree_state(tree, each_file=not clean, with_ignored=clean)
    tip = tip_of(farm, one.record, now)
    seen = {*evidence.changed, *evidence.untracked}
    same = (now.head, tip) == (evidence.head, evidence.tip) and not now.operation and not now.unread
    if not same or not {*now.dirty, *now.untracked} <= seen:
        return None
    ignored = ignored_entries(tree) if now.ignored or not clean else []
    return _Seen(tree, tuple(path.rstrip("/") for path in ignored))


def _decide(farm: Farm, seen: Mapping[str, tuple[Leaving, Trashed, _Seen]]) -> Found:
    """Stores everything that a restore needs, and makes a ref for what git would forget."""
    trees = {
        id: LeavingTree(look.tree, kept.record.branch, [*filter(None, (one.evidence.head, one.evidence.tip))])
        for id, (one, kept, look) in seen.items()
    }
    lonely = lonely_commits(farm.repository, trees)
    found: Found = {}
    for id, (one, kept, look) in seen.items():
        try:
            found[id] = _record(farm, kept, look, one.evidence, lonely[id])
        except (AgentFarmError, OSError) as error:
            found[id] = as_farm_error(error, f"{id} was not removed")
    return found


def _record(farm: Farm, kept: Trashed, look: _Seen, evidence: Evidence, lonely: Sequence[str]) -> Trashed:
    tree, branch = look.tree, kept.record.branch
    commits = list(lonely)
    if evidence.tip and evidence.tip != evidence.head and kept.goes:
        commits.append(evidence.tip)
    if commits:
        tree.run("update-ref", kept.ref, bundle(farm.repository, commits))
    log = branch_log(tree.common_dir, branch)
    if log.is_file():
        shutil.copyfile(log, kept.branch_log)
    left_out = [path for path in look.ignored if _is_made_again(tree, path)]
    # Only the builder can have made these in a worktree, and git is told to ignore them.
    ours = [name for line in IGNORED_BY_GIT if os.path.lexists(tree.path / (name := line.strip("/")))]
    own = {*evidence.changed, *evidence.untracked, *look.ignored, *ours} - set(left_out)
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
    return is_tool_made(tree.path, path) and not holds_repository(tree.path / path)


def settle_removal(farm: Farm, kept: Trashed) -> str:
    """Undo or complete an interrupted removal. The caller holds the builder's lock."""
    current = load_kept(kept.directory)
    if current is None:
        return f"{kept.record.id} is settled"
    if current.is_removed:
        tree = linked_tree(farm.repository, current.worktree)
        drop_builders_locks(tree, [f"refs/heads/{current.record.branch}"], head=True)
        for problem in finish(farm, [current]).values():
            raise problem
        return f"{kept.record.id} is removed; af restore {kept.record.id} brings it back"
    _undo(farm, current)
    return f"the removal of {kept.record.id} is undone"


def settle_alone(farm: Farm, kept: Trashed) -> str:
    with lock_of(farm, kept.record.id):
        return settle_removal(farm, kept)


def _undo(farm: Farm, kept: Trashed) -> None:
    """Restore the builder; a removal that is already recorded is left to be completed."""
    current = load_kept(kept.directory)
    if current is not None and current.is_removed:
        return
    path = farm.paths.worktree(kept.record.id)
    take_out(farm.repository, kept.worktree, path)
    drop_builders_locks(main_checkout(farm.repository), [kept.ref], head=False)
    drop_ref(farm.repository, kept.ref)
    shutil.rmtree(kept.directory)


def finish(farm: Farm, removed: Sequence[Trashed]) -> dict[str, AgentFarmError]:
    """Everything that follows once removals are recorded; can be repeated after a crash.

    Returns what could not be finished, by builder.
    """
    goes, problems = _let_go(farm, removed)
    left = [kept for kept in removed if kept.record.id not in problems]
    for kept in left:
        run = farm.paths.run(kept.record.id)
        if run.is_dir() and not kept.run.exists():
            os.rename(run, kept.run)
    ids = [kept.record.id for kept in left]
    farm.registry.drop(*ids)
    release_ports(farm.root, ids)
    problems |= _require_gone(farm, left, goes)
    doomed = list[Path]()
    for kept in left:
        if kept.record.id in problems:
            continue
        for path in kept.left_out:
            if is_tool_made(kept.worktree, path):
                with suppress(OSError):  # another user's files stay, and come back
                    doomed.append(set_out(kept.worktree / path, to=kept.directory))
        farm.paths.builder_lock(kept.record.id).unlink(missing_ok=True)
        farm.paths.delivery_lock(kept.record.id).unlink(missing_ok=True)
    delete_trees(doomed)
    return problems


def _let_go(farm: Farm, removed: Sequence[Trashed]) -> tuple[set[str], dict[str, AgentFarmError]]:
    """Detach HEADs, which keep the commits; returns the ids of builders whose branch is deleted.

    A branch is deleted if it is the builder's own, has not moved, and nobody has checked it out: this may be
    long after.
    """
    by_id = {kept.record.id: kept for kept in removed}
    own = {str(kept.worktree) for kept in removed}
    used = {one.branch for one in list_worktrees(farm.repository) if str(one.path) not in own}
    mine = {
        id: kept
        for id, kept in by_id.items()
        if kept.goes and kept.tip is not None and kept.record.branch not in used
    }
    goes, problems = set(mine), dict[str, AgentFarmError]()
    try:
        let_go(farm.repository, [_detached(kept, id in mine) for id, kept in by_id.items()])
    except GitError:  # for one of them, where git has stopped
        for id, kept in by_id.items():
            try:
                if not _let_one_go(farm, kept, id in mine):
                    goes.discard(id)
            except AgentFarmError as error:
                problems[id] = error
    for id in goes - problems.keys():
        if mine[id].settings:
            forget_settings(farm.repository, mine[id].record.branch)
    return goes, problems


def _let_one_go(farm: Farm, kept: Trashed, goes: bool) -> bool:
    """Returns whether its branch is gone now."""
    try:
        let_go(farm.repository, [_detached(kept, goes)])
    except GitError:
        tip = farm.repository.branch_commit(kept.record.branch)
        if not goes or tip == kept.tip:
            raise
        let_go(farm.repository, [_detached(kept, False)])  # it has moved, or went before a crash
        return tip is None
    return goes


def _detached(kept: Trashed, goes: bool) -> tuple[str, str | None, Sequence[str]]:
    return kept.admin, kept.head, [f"delete refs/heads/{kept.record.branch} {kept.tip}"] if goes else []


def _require_gone(farm: Farm, removed: Sequence[Trashed], goes: Collection[str]) -> dict[str, AgentFarmError]:
    """Checks, instead of assuming, before anything reports "removed"."""
    records, problems = farm.registry.read(), dict[str, AgentFarmError]()
    branches = {f"refs/heads/{kept.record.branch}" for kept in removed if kept.record.id in goes}
    tips = resolve_commits(farm.repository, branches) if branches else {}
    for kept in removed:
        id, left = kept.record.id, []
        if os.path.lexists(farm.paths.worktree(id)):
            left.append(f"worktree {farm.paths.worktree(id)}")
        if tips.get(f"refs/heads/{kept.record.branch}"):
            left.append(f"branch {kept.record.branch}")
        if id in records:
            left.append("record")
        if admin_of(farm.repository, kept.admin, kept.worktree) is None:
            left.append(f"git does not know {kept.worktree}")
        if left:
            problems[id] = AgentFarmError(
                f"{id} was only partly removed", evidence=left, hint="af doctor --fix"
            )
    return problems

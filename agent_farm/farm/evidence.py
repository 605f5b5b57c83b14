"""What speaks against removing a builder: work that exists nowhere else, and doubts about whose it is."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import CUT_SHORT, Status
from agent_farm.errors import AgentFarmError, WorkWouldBeLost
from agent_farm.farm.ending import program_in_session
from agent_farm.farm.farm import Farm
from agent_farm.farm.landing_places import landing_places, merged_commit
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.panes import Found, find_panes
from agent_farm.git.asking import side_by_side
from agent_farm.git.changes import TreeState, tree_state
from agent_farm.git.checkout import BuilderTree, WorktreeMismatch
from agent_farm.git.landed import Commit, unlanded_of_each
from agent_farm.git.nested import submodules_with_work
from agent_farm.git.worktrees import Worktree, list_worktrees
from agent_farm.launch import as_command

_SHOWN = 20


class Obstacle(Struct, frozen=True):
    """A reason that no option waives, and what would resolve it."""

    what: str
    hint: str | None = None


class Evidence(Struct, frozen=True):
    """`head` is the commit checked out, `tip` the branch's, at the time of this look."""

    status: Status
    obstacles: tuple[Obstacle, ...] = ()
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    head: str | None = None
    tip: str | None = None
    tree: BuilderTree | None = None
    state: TreeState | None = None

    @property
    def has_landed(self) -> bool:
        return not (self.obstacles or self.changed or self.untracked or self.commits)

    def summary(self) -> str:
        noun = "commit" if len(self.commits) == 1 else "commits"
        lost = (
            (self.changed, "changed"),
            (self.untracked, "untracked"),
            (self.commits, f"{noun} not landed"),
        )
        parts = [obstacle.what for obstacle in self.obstacles]
        parts += [CUT_SHORT] if self.status.cut_short else []
        return ", ".join(parts + [f"{len(items)} {name}" for items, name in lost if items])


def gather(
    farm: Farm,
    records: Collection[BuilderRecord],
    *,
    stopping: Collection[str] = (),
    seen: Mapping[str, TreeState] | None = None,
) -> dict[str, Evidence | AgentFarmError]:
    """Everything that speaks against removing each builder, asked afresh; or why that is not known.

    Running does not count in the states in `stopping`, because such a builder is stopped first. `seen` are
    worktrees as read just before, by a caller that checks again before anything becomes final.
    """
    panes = find_panes(record for record in records if record.state != "queued")
    statuses = read_statuses(farm, records, panes)
    worktrees = list_worktrees(farm.repository)
    found = dict[str, Evidence | AgentFarmError]()
    trees = dict[str, BuilderTree]()
    for record in records:
        status = statuses[record.id]
        running = _cannot_stop(status) if status.state in stopping else _running(record, status, panes)
        try:
            obstacles = running or _foreign(record, trees.setdefault(record.id, farm.tree(record)), worktrees)
        except WorktreeMismatch as error:
            obstacles = [Obstacle(f"{error.what}: {error.why}" if error.why else error.what, error.hint)]
        except AgentFarmError as error:
            found[record.id] = error
            continue
        if obstacles:
            found[record.id] = Evidence(status, tuple(obstacles))
    left = [record for record in records if record.id not in found]
    return found | _work_of(farm, left, statuses, trees, seen or {})


def _work_of(
    farm: Farm,
    records: Sequence[BuilderRecord],
    statuses: Mapping[str, Status],
    trees: Mapping[str, BuilderTree],
    seen: Mapping[str, TreeState],
) -> dict[str, Evidence | AgentFarmError]:
    """What would be lost of those against whose removal nothing else speaks."""
    questions = {
        record.id: partial(_look, farm, record, trees[record.id], seen.get(record.id)) for record in records
    }
    found = dict[str, Evidence | AgentFarmError]()
    looked = dict[str, _Look]()
    for id, look in side_by_side(questions, step=partial(farm.step, "Looking for work")).items():
        if isinstance(look, AgentFarmError):
            found[id] = look
        else:
            looked[id] = look
    asked = [record for record in records if record.id in looked]
    commits = _commits(farm, asked, looked)
    for record in asked:
        own, look = commits[record.id], looked[record.id]
        found[record.id] = (
            own if isinstance(own, AgentFarmError) else look.evidence(record, statuses[record.id], own)
        )
    return found


class _Look(Struct, frozen=True):
    tree: BuilderTree
    state: TreeState
    tip: str | None
    submodules: tuple[str, ...]

    def evidence(self, record: BuilderRecord, status: Status, commits: Sequence[Commit]) -> Evidence:
        state = self.state
        return Evidence(
            status,
            tuple(_undecided(record, state, commits)),
            (*state.dirty, *self.submodules),
            state.untracked,
            tuple(commits),
            state.head,
            self.tip,
            self.tree,
            state,
        )


def _look(farm: Farm, record: BuilderRecord, tree: BuilderTree, seen: TreeState | None) -> _Look:
    state = seen or tree_state(tree, each_file=True)
    return _Look(tree, state, tip_of(farm, record, state), tuple(_submodules(tree, state)))


def require_removable(
    record: BuilderRecord, evidence: Evidence, *, discard_changes: bool, discard_commits: bool
) -> None:
    """WorkWouldBeLost with the evidence, unless everything that would be lost was waived."""
    if evidence.obstacles:
        raise WorkWouldBeLost(
            f"{record.id} was not removed",
            why="; ".join(obstacle.what for obstacle in evidence.obstacles),
            hint=next((obstacle.hint for obstacle in evidence.obstacles if obstacle.hint), None),
        )
    lines, flags = [], []
    if (evidence.changed or evidence.untracked) and not discard_changes:
        lines += [f"changed    {path}" for path in evidence.changed[:_SHOWN]]
        lines += [f"untracked  {path}" for path in evidence.untracked[:_SHOWN]]
        flags.append("--discard-changes")
    if evidence.commits and not discard_commits:
        lines += [f"commit     {commit.sha[:10]} {commit.subject}" for commit in evidence.commits[:_SHOWN]]
        flags.append("--discard-commits")
    if flags:
        raise WorkWouldBeLost(
            f"{record.id} was not removed: its work has not landed",
            why=f"This exists nowhere else: {evidence.summary()}. {' and '.join(flags)}"
            f" remove{'s' * (len(flags) == 1)} it anyway.",
            evidence=lines,
            hint=as_command("af", "merge" if evidence.commits else "diff", record.id),
        )


def _cannot_stop(status: Status) -> list[Obstacle]:
    if status.state == "unknown":
        return [Obstacle(f"tmux could not be asked whether it runs: {status.reason}")]
    return [Obstacle("it is being created", "af status")] if status.state == "creating" else []


def _running(record: BuilderRecord, status: Status, panes: Mapping[str, Found]) -> list[Obstacle]:
    if status.state == "unknown":
        return _cannot_stop(status)
    if not status.is_finished:
        return [Obstacle(f"it is still running ({status.state})", as_command("af", "stop", record.id))]
    program = program_in_session(panes[record.id]) if record.id in panes else None
    if program:
        return [Obstacle(f"{program} runs in its session", as_command("af", "attach", record.id))]
    return []


def _foreign(record: BuilderRecord, tree: BuilderTree, worktrees: Sequence[Worktree]) -> list[Obstacle]:
    """Somebody's lock counts, and so does a branch that is checked out elsewhere."""
    if (tree.git_dir / "locked").exists():
        reason = (tree.git_dir / "locked").read_text(errors="replace").strip()
        what = f"its worktree is locked{f': {reason}' if reason else ''}"
        return [Obstacle(what, as_command("git", "worktree", "unlock", tree.path))]
    checked_out = tree.checked_out().branch
    if checked_out not in (None, record.branch):
        return [
            Obstacle(
                f"its worktree has {checked_out} checked out, not {record.branch}",
                as_command("git", "-C", tree.path, "switch", record.branch),
            )
        ]
    elsewhere = [one.path for one in worktrees if one.branch == record.branch]
    others = [path for path in elsewhere if os.path.realpath(path) != os.path.realpath(tree.path)]
    if others:
        what = f"its branch {record.branch} is checked out in {others[0]}, too"
        return [Obstacle(what, as_command("git", "-C", others[0], "switch", "--detach"))]
    return []


def _undecided(record: BuilderRecord, tree: TreeState, commits: Sequence[Commit]) -> list[Obstacle]:
    path = record.worktree
    if tree.unread:
        more = f" (and {len(tree.unread) - 1} more)" if len(tree.unread) > 1 else ""
        return [
            Obstacle(
                f"git cannot see all that is in it: {tree.unread[0]}{more}",
                as_command("git", "-C", path, "status"),
            )
        ]
    if tree.operation:
        return [
            Obstacle(f"a {tree.operation} is in progress", as_command("git", "-C", path, "status")),
        ]
    if tree.branch is None and commits:
        return [
            Obstacle(
                f"HEAD is detached and has {len(commits)} commit{'s' * (len(commits) != 1)} of its own",
                as_command("git", "-C", path, "switch", "-c", f"{record.branch}-rescue"),
            )
        ]
    return []


def _submodules(tree: BuilderTree, state: TreeState) -> list[str]:
    """Submodules that look unchanged from here, but have branches or files that exist nowhere else."""
    found = submodules_with_work(tree)
    return [f"{path} ({reason})" for path, reason in found.items() if path not in state.dirty]


def tip_of(farm: Farm, record: BuilderRecord, state: TreeState) -> str | None:
    """Where the builder's branch is, whether or not it is checked out."""
    return state.head if state.branch == record.branch else farm.repository.branch_commit(record.branch)


def _commits(
    farm: Farm, records: Sequence[BuilderRecord], looks: Mapping[str, _Look]
) -> dict[str, list[Commit] | AgentFarmError]:
    """The commits that have not landed; one question for all builders with the same base."""
    found = dict[str, list[Commit] | AgentFarmError]()
    where = {record.id: (record.base, merged_commit(farm, record.id)) for record in records}
    for base, merged in set(where.values()):
        ids = [id for id, place in where.items() if place == (base, merged)]
        own = [looks[id] for id in ids]
        tips = {
            id: sorted({name for name in (look.state.head, look.tip) if name})
            for id, look in zip(ids, own, strict=True)
        }
        try:
            targets = landing_places(farm, base)
            found |= unlanded_of_each(farm.repository, tips, [*targets, *([merged] if merged else [])])
        except AgentFarmError as error:
            found |= dict.fromkeys(ids, error)
    return found

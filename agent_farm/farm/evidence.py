"""What stands against removing a builder: its work that exists nowhere else, and doubts about whose it is."""

from __future__ import annotations

from dataclasses import dataclass

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import CUT_SHORT, Status
from agent_farm.errors import WorkWouldBeLost
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status
from agent_farm.farm.panes import find_pane
from agent_farm.farm.stop import program_in_shell
from agent_farm.git.changes import TreeState, tree_state
from agent_farm.git.landed import Commit, landing_targets, unlanded_commits
from agent_farm.git.nested import nested_repositories
from agent_farm.git.worktrees import Worktree, belongs_here, find_worktree
from agent_farm.launch import as_command

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason that no flag waives, with what would remove it."""

    what: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    status: Status
    obstacles: tuple[Obstacle, ...] = ()
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()

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


def gather(farm: Farm, record: BuilderRecord, *, will_stop: bool = False) -> Evidence:
    """Everything that speaks against removing, asked afresh. Running does not, when it is stopped first."""
    status = read_status(farm, record)
    running = _cannot_stop(status) if will_stop else _running(farm, record, status)
    obstacles = [*running, *_foreign(farm, record)]
    if obstacles:
        return Evidence(status, tuple(obstacles))
    tree = tree_state(record.worktree_path, each_file=True)
    commits = _commits(farm, record, tree)
    return Evidence(
        status,
        tuple(_undecided(record, tree, commits)),
        (*tree.dirty, *_submodules(record, tree)),
        tree.untracked,
        tuple(commits),
    )


def require_removable(
    record: BuilderRecord, evidence: Evidence, *, discard_changes: bool, discard_commits: bool
) -> None:
    """WorkWouldBeLost with the evidence, unless all that would be lost was waived."""
    if evidence.obstacles:
        raise WorkWouldBeLost(
            f"{record.id} is not removed",
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
            f"{record.id} is not removed: its work has not landed",
            why=f"This exists nowhere else: {evidence.summary()}. {' '.join(flags)} removes it all the same.",
            evidence=lines,
            hint=as_command("af", "merge" if evidence.commits else "diff", record.id),
        )


def _cannot_stop(status: Status) -> list[Obstacle]:
    if status.state == "unknown":
        return [Obstacle(f"tmux could not be asked whether it runs: {status.reason}")]
    return [Obstacle("it is being created", "af status")] if status.state == "creating" else []


def _running(farm: Farm, record: BuilderRecord, status: Status) -> list[Obstacle]:
    if status.state == "unknown":
        return _cannot_stop(status)
    if not status.is_finished:
        return [Obstacle(f"it is {status.state}", as_command("af", "stop", record.id))]
    pane = find_pane(record).pane
    program = program_in_shell(pane)
    if program:
        return [Obstacle(f"{program} runs in its shell", as_command("af", "attach", record.id))]
    return []


def _foreign(farm: Farm, record: BuilderRecord) -> list[Obstacle]:
    """Path, branch and record have to name each other, in this repository."""
    path = record.worktree_path
    if not path.is_dir():
        return [Obstacle(f"its worktree {path} is gone", "af doctor --fix")]
    tree = find_worktree(farm.repository, path)
    if tree is None or not belongs_here(farm.repository, path):
        return [Obstacle(f"{path} is no worktree of this repository", "af doctor")]
    if tree.locked_reason is not None:
        reason = f": {tree.locked_reason}" if tree.locked_reason else ""
        return [Obstacle(f"its worktree is locked{reason}", as_command("git", "worktree", "unlock", path))]
    return _other_branch(record, tree)


def _other_branch(record: BuilderRecord, tree: Worktree) -> list[Obstacle]:
    if tree.branch is None or tree.branch == record.branch:
        return []
    return [
        Obstacle(
            f"its worktree has {tree.branch} checked out, not {record.branch}",
            as_command("git", "-C", tree.path, "switch", record.branch),
        )
    ]


def _undecided(record: BuilderRecord, tree: TreeState, commits: list[Commit]) -> list[Obstacle]:
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


def _submodules(record: BuilderRecord, tree: TreeState) -> list[str]:
    """Submodules that look unchanged from here, with branches or files that exist nowhere else."""
    found = nested_repositories(record.worktree_path)
    return [
        f"{one.path} ({one.reason})"
        for one in found
        if one.kind == "submodule" and one.path not in tree.dirty
    ]


def _commits(farm: Farm, record: BuilderRecord, tree: TreeState) -> list[Commit]:
    tips = {tree.head, farm.repository.branch_commit(record.branch)} - {None}
    targets = landing_targets(farm.repository, record.base)
    return unlanded_commits(farm.repository, sorted(str(tip) for tip in tips), targets)

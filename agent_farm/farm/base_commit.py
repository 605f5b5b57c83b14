"""Chooses where a builder's branch starts: at a base, or as an existing branch, here or on a remote."""

from __future__ import annotations

from msgspec import Struct

from agent_farm.errors import AgentFarmError, NotFound, TimedOut, UsageError, nearest
from agent_farm.farm.farm import Farm
from agent_farm.git.git_process import GitError
from agent_farm.git.remotes import (
    RemoteBranch,
    Upstream,
    fetch_remote,
    remote_branches_of,
    remote_of,
    upstreams_of,
)
from agent_farm.git.worktrees import branch_checked_out_at
from agent_farm.launch import as_command

FETCH_SECONDS = 120.0


class Start(Struct, frozen=True):
    """Where the builder's branch starts: `tip` is the commit that is checked out.

    `upstream` is the remote-tracking branch from which the named branch is made, if that does not exist yet.
    `follows` is how far the base is from its upstream, if they differ.
    """

    base: str
    base_commit: str
    tip: str
    existing_branch: str | None = None
    upstream: RemoteBranch | None = None
    follows: Upstream | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about it before the builder starts."""
        if self.upstream:
            return (f"{self.existing_branch} is made from {self.upstream.name}, and follows it",)
        if self.follows is None or self.existing_branch:
            return ()
        begins, other = f"from {self.base} at {self.tip[:10]}", self.follows
        if other.ahead:
            return (f"{begins}, {other.behind} behind and {other.ahead} ahead of {other.name}",)
        return (f"{begins}, {other.behind} behind {other.name}; --fetch brings it up to date first",)


def choose_start(farm: Farm, base: str | None, branch: str | None, *, fetch: bool = False) -> Start:
    """From the given base or branch, else from `spawn.base`, else from HEAD of this checkout.

    With `fetch`, a base that is only behind its upstream is replaced by that.
    """
    repository = farm.repository
    head = repository.head()
    base = base or (None if branch else farm.settings.text("spawn.base"))
    name = base or head.branch
    if fetch and name:
        _fetch(farm, name)
    commit = repository.resolve_commit(base) if base else head.commit
    follows = upstreams_of(repository, [name]).get(name) if name else None
    if follows is not None and not follows.behind:
        follows = None
    start = Start(name or head.commit, commit, commit, follows=follows)
    if branch:
        return go_on_with(farm, start, branch)
    if fetch and follows is not None and not follows.ahead:
        tip = repository.resolve_commit(f"refs/remotes/{follows.name}")
        return Start(start.base, tip, tip)
    return start


def _fetch(farm: Farm, name: str) -> None:
    remote = remote_of(farm.repository, name)
    if remote is None:
        raise UsageError(
            f"--fetch: {name} follows no remote branch",
            hint=as_command("git", "branch", "--set-upstream-to", f"origin/{name}", name),
        )
    try:
        fetch_remote(farm.repository, remote, seconds=FETCH_SECONDS)
    except (GitError, TimedOut) as error:
        raise AgentFarmError(
            f"{remote} cannot be fetched",
            why=error.why or error.what,
            hint="the same without --fetch (spawn.fetch = false) starts from what is here",
        ) from error


def go_on_with(farm: Farm, start: Start, branch: str) -> Start:
    """Continue an existing branch; git allows it in only one worktree."""
    tip = farm.repository.branch_commit(branch)
    if tip is None:
        return _on_remote_branch(farm, start, branch)
    place = branch_checked_out_at(farm.repository, branch)
    if place is not None:
        raise UsageError(
            f"The branch {branch} is checked out elsewhere",
            why=f"It is in use in {place}. With --base a builder begins a branch of its own there.",
            hint=as_command("af", "spawn", "--base", branch) + " …",
        )
    from agent_farm.git.divergence import merge_base  # a new branch needs none

    common = merge_base(farm.repository, start.base_commit, tip)
    return Start(start.base, common or start.base_commit, tip, branch)


def _on_remote_branch(farm: Farm, start: Start, name: str) -> Start:
    """Continue a branch that only a remote has, as `git switch` does: a local one will track it."""
    found = remote_branches_of(farm.repository, name)
    if not found:
        raise _no_branch(farm, name)
    one = found[0]
    if len(found) > 1:
        raise UsageError(
            f"The branch {name} is on more than one remote",
            why=f"{', '.join(other.name for other in found)}: name one of them.",
            hint=as_command("git", "-C", farm.root, "branch", "--track", one.local, one.name),
        )
    tip = farm.repository.resolve_commit(one.ref)
    local = farm.repository.branch_commit(one.local)
    if local is None:
        # It starts at the remote's branch, whose commits are never undone.
        return Start(start.base, tip, tip, one.local, one)
    if local != tip:
        raise UsageError(
            f"The branch {one.local} exists already, and is not where {one.name} is",
            why=f"--branch {one.local} continues it as it is.",
            hint=as_command("git", "-C", farm.root, "log", "--oneline", f"{one.local}...{one.name}"),
        )
    return go_on_with(farm, start, one.local)


def _no_branch(farm: Farm, name: str) -> NotFound:
    known = [
        *farm.repository.branches(),
        *(ref.removeprefix("refs/remotes/") for ref in farm.repository.remote_branches()),
    ]
    close = nearest(name, known)
    if close:
        return NotFound(f"No branch {name}", why=f"The nearest name is {close}.", hint="git branch --all")
    return NotFound(f"No branch {name}", why="Neither here nor on a remote.", hint="git branch --all")

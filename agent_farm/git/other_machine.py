"""Pushes commits to and fetches them from the same repository on another machine, which is not trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote

from msgspec import Struct

from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.git.divergence import commit_at
from agent_farm.git.git_process import GitError, ask_git, run_git
from agent_farm.git.repository import Repository
from agent_farm.git.unpacked import allocation_bound
from agent_farm.launch import as_command

_PUSH_SECONDS = 3600.0
_FETCH_SECONDS = 600.0
_PUSHES = 5  # git there refuses a push while a worktree is being made that has no commit yet
TOO_MUCH = "af: more came than may be fetched"  # printed by the program that counts
_NO_ROOM = "attempting to allocate"  # printed by git about an object that is larger
# Given on the command line, these override the user's files. Every object that arrives is checked; a pack of
# many objects is kept as it is, without expanding its deltas, and a large object is never held whole in
# memory.
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "protocol.allow=never",
    "protocol.ssh.allow=always",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    "fetch.unpackLimit=20",
    "core.bigFileThreshold=16m",
    "fetch.prune=false",
    "submodule.recurse=false",
    "push.followTags=false",
    "gc.auto=0",
    "maintenance.auto=false",
)


class WayThere(Struct, frozen=True):
    """How git reaches the machine: `ssh` is a command of fixed words, to which git appends its own."""

    destination: str
    port: int | None
    directory: str
    ssh: str
    most_bytes: int

    @property
    def url(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"ssh://{self.destination}{port}{quote(self.directory)}"

    @property
    def environment(self) -> dict[str, str]:
        return {"GIT_SSH_COMMAND": self.ssh, "GIT_SSH_VARIANT": "ssh"}

    @property
    def bounds(self) -> dict[str, str]:
        """The environment of a fetch: a delta of a few bytes may expand to gigabytes, and gets no room."""
        return allocation_bound(self.most_bytes)


def _git(
    repository: Repository,
    line: WayThere,
    *words: str,
    seconds: float,
    bounds: Mapping[str, str] | None = None,
) -> str:
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    env = {**line.environment, **(bounds or {})}
    try:
        return run_git(repository.root, *settings, *words, env=env, timeout=seconds, apart=True)
    except GitError as error:
        if TOO_MUCH in error.stderr or needs_room(error):
            raise too_much(line.destination) from error
        if "Could not read from remote repository" not in error.stderr:
            raise
        why = next(iter(error.stderr.splitlines()), None)
        raise Unreachable(f"{line.destination} cannot be reached by git", why=why) from error


def needs_room(error: GitError) -> bool:
    """Whether git was to unpack an object that is larger than may be."""
    return _NO_ROOM in error.stderr


class TooMuch(AgentFarmError):
    """More arrived than one fetch may bring."""


class NotWhole(AgentFarmError):
    """git there could not give all of it: objects or history are missing, as in a shallow clone."""


def too_much(machine: str) -> TooMuch:
    return TooMuch(
        f"{machine} sends more than fleet.fetch_megabytes",
        why="Nothing was kept.",
        hint="af config get fleet.fetch_megabytes",
    )


def push_commits(repository: Repository, line: WayThere, refs: Mapping[str, str]) -> None:
    """Set refs there to these commits; only objects that the machine lacks travel."""
    pairs = (f"+{commit}:{ref}" for ref, commit in refs.items())
    words = ("push", "--quiet", "--no-verify", "--no-signed", "--no-recurse-submodules", "--", line.url)
    whole = (*words, *pairs)
    for left in reversed(range(_PUSHES)):
        try:
            _git(repository, line, *whole, seconds=_PUSH_SECONDS)
            return
        except GitError as error:
            if "shallow update not allowed" in error.stderr:
                what = "This clone is shallow: another machine cannot be given its commits"
                hint = "git fetch --unshallow"
                raise AgentFarmError(what, why="Their history is not here.", hint=hint) from error
            if not left or "bad object worktrees/" not in error.stderr:
                raise


def fetched_ref(builder: str) -> str:
    """The ref of a builder's work as last fetched. Every name is chosen here: the machine chooses none."""
    return f"refs/agent-farm/fleet/{builder}"


def coming_work_ref(builder: str) -> str:
    """The ref of fetched work until `take_work`; no builder's id contains an @."""
    return f"{fetched_ref(builder)}@coming"


def fetch_refs(repository: Repository, line: WayThere, refs: Mapping[str, str]) -> None:
    """Fetch their refs under the names given for them here; only objects missing here travel."""
    pairs = (f"+{theirs}:{ours}" for theirs, ours in refs.items())
    words = (
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
        "--no-auto-maintenance", "--", line.url, *pairs,
    )  # fmt: skip
    _git(repository, line, *words, seconds=_FETCH_SECONDS, bounds=line.bounds)


def fetched_commit(repository: Repository, builder: str) -> str | None:
    return commit_at(repository, fetched_ref(builder))


def note_fetched(repository: Repository, builder: str, commit: str) -> None:
    """For a builder whose branch already existed here."""
    run_git(repository.root, "update-ref", fetched_ref(builder), commit)


def take_work(repository: Repository, builder: str, branch: str, commit: str, before: str) -> None:
    """Record the commit as fetched and move the branch to it in one step: a kill in between would leave a
    branch that looks as if somebody had moved it here."""
    now = repository.branch_commit(branch)
    problem = None if now == commit else _unmovable(repository, branch, commit, now, before)
    lines = ["start", f"update {fetched_ref(builder)} {commit}", f"delete {coming_work_ref(builder)}"]
    if problem is None and now != commit:
        ref = f"refs/heads/{branch}"
        lines.append(f"update {ref} {commit} {now}" if now else f"create {ref} {commit}")
    run_git(repository.root, "update-ref", "--stdin", input="\n".join([*lines, "commit\n"]))
    if problem is not None:
        raise problem


def is_further(repository: Repository, commit: str, before: str) -> bool:
    """Whether `commit` is a descendant of `before`."""
    status, _, _ = ask_git(repository.root, "merge-base", "--is-ancestor", before, commit)
    return status == 0


def make_branch(repository: Repository, branch: str, commit: str) -> None:
    """Create the branch; GitError if it exists."""
    run_git(repository.root, "update-ref", f"refs/heads/{branch}", commit, "")


def move_branch(repository: Repository, branch: str, commit: str, before: str | None) -> None:
    """Move the branch to where the builder is, unless somebody moved it here or has it checked out."""
    now = repository.branch_commit(branch)
    if now == commit:
        return
    if (problem := _unmovable(repository, branch, commit, now, before)) is not None:
        raise problem
    run_git(repository.root, "update-ref", f"refs/heads/{branch}", commit, now or "")


def _unmovable(
    repository: Repository, branch: str, commit: str, now: str | None, before: str | None
) -> AgentFarmError | None:
    if now is not None and now != before:
        return AgentFarmError(
            f"{branch} has been moved here",
            why="Neither the branch nor the builder's work was changed.",
            hint=as_command("git", "-C", repository.root, "log", "--oneline", f"{branch}...{commit}"),
        )
    from agent_farm.git.worktrees import branch_checked_out_at  # only needed when a branch moves

    if (place := branch_checked_out_at(repository, branch)) is not None:
        return AgentFarmError(
            f"{branch} is checked out in {place}",
            why="The builder has new commits, but a branch that is checked out is not moved.",
            hint=as_command("git", "-C", place, "switch", "--detach"),
        )
    return None


def drop_branch(repository: Repository, branch: str, commit: str) -> bool:
    """Delete the branch, and return whether it is gone; one that has moved or is checked out stays."""
    from agent_farm.git.worktrees import branch_checked_out_at

    if repository.branch_commit(branch) is None:
        return True
    if branch_checked_out_at(repository, branch) is not None:
        return False
    with suppress(GitError):
        run_git(repository.root, "update-ref", "-d", f"refs/heads/{branch}", commit)
        return True
    return False

"""Commits to and from the same repository on another machine, which is believed in nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote

from msgspec import Struct

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.git.git_process import GitError, ask_git, run_git
from agent_farm.git.repository import Repository
from agent_farm.git.unpacked import allocation_bound
from agent_farm.launch import as_command

_PUSH_SECONDS = 3600.0
_FETCH_SECONDS = 600.0
_PUSHES = 5  # git there refuses one that meets a worktree which is being made, and has no commit yet
TOO_MUCH = "af: more came than may be fetched"  # said by the program that counts
_NO_ROOM = "attempting to allocate"  # git, of an object that is larger
_COMMIT = re.compile(OBJECT_NAME)
# On the command line they win over the person's files. What comes is checked, object by object; of a pack
# with many no delta is written out, and what is large is never held whole.
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


class Line(Struct, frozen=True):
    """How git gets there: `ssh` is a command of fixed words, to which git adds its own."""

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
        """Of a fetch. A delta of a few bytes may come to gigabytes: git is given no room for those."""
        return allocation_bound(self.most_bytes)


def _git(
    repository: Repository, line: Line, *words: str, seconds: float, bounds: Mapping[str, str] | None = None
) -> str:
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    env = {**line.environment, **(bounds or {})}
    try:
        return run_git(repository.root, *settings, *words, env=env, timeout=seconds, apart=True)
    except GitError as error:
        if TOO_MUCH in error.stderr or _NO_ROOM in error.stderr:
            raise too_much(line.destination) from error
        if "Could not read from remote repository" not in error.stderr:
            raise
        why = next(iter(error.stderr.splitlines()), None)
        raise Unreachable(f"{line.destination} cannot be reached by git", why=why) from error


class TooMuch(AgentFarmError):
    """More came than one fetch may bring."""


def too_much(machine: str) -> TooMuch:
    return TooMuch(
        f"{machine} sends more than fleet.fetch_megabytes",
        why="Nothing was kept.",
        hint="af config get fleet.fetch_megabytes",
    )


def push_commits(repository: Repository, line: Line, refs: Mapping[str, str]) -> None:
    """Each ref there is that commit then; only what is missing there travels."""
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
    """Where its work lies as it was fetched last: refs of one machine never reach another name."""
    return f"refs/agent-farm/fleet/{builder}"


def coming_work_ref(builder: str) -> str:
    """Where it lies until `take_work`; no id of a builder has an @."""
    return f"{fetched_ref(builder)}@coming"


def fetch_refs(repository: Repository, line: Line, refs: Mapping[str, str]) -> None:
    """Each of theirs under the name that it is given here; only what is missing here travels."""
    pairs = (f"+{theirs}:{ours}" for theirs, ours in refs.items())
    words = (
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
        "--no-auto-maintenance", "--", line.url, *pairs,
    )  # fmt: skip
    _git(repository, line, *words, seconds=_FETCH_SECONDS, bounds=line.bounds)


def fetched_commit(repository: Repository, builder: str) -> str | None:
    with suppress(GitError):
        found = run_git(
            repository.root, "rev-parse", "--verify", "--quiet", f"{fetched_ref(builder)}^{{commit}}"
        ).strip()
        return found if _COMMIT.fullmatch(found) else None
    return None


def note_fetched(repository: Repository, builder: str, commit: str) -> None:
    """Of one whose branch was there before it."""
    run_git(repository.root, "update-ref", fetched_ref(builder), commit)


def take_work(repository: Repository, builder: str, branch: str, commit: str, before: str) -> None:
    """What came is what was fetched last, and its branch moves with that, in one step: whoever is killed
    leaves no branch that looks as if somebody had moved it here."""
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
    """Whether `commit` is a descendant of it."""
    status, _, _ = ask_git(repository.root, "merge-base", "--is-ancestor", before, commit)
    return status == 0


def make_branch(repository: Repository, branch: str, commit: str) -> None:
    """GitError where there is one."""
    run_git(repository.root, "update-ref", f"refs/heads/{branch}", commit, "")


def move_branch(repository: Repository, branch: str, commit: str, before: str | None) -> None:
    """To where the builder is, unless somebody has moved it here, or stands on it."""
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
    from agent_farm.git.worktrees import branch_checked_out_at  # what moves nothing does without

    if (place := branch_checked_out_at(repository, branch)) is not None:
        return AgentFarmError(
            f"{branch} is checked out in {place}",
            why="The builder has new commits, but a branch that is checked out is not moved.",
            hint=as_command("git", "-C", place, "switch", "--detach"),
        )
    return None


def drop_branch(repository: Repository, branch: str, commit: str) -> bool:
    """Whether it is gone: one that is elsewhere by now, or checked out, stays."""
    from agent_farm.git.worktrees import branch_checked_out_at

    if repository.branch_commit(branch) is None:
        return True
    if branch_checked_out_at(repository, branch) is not None:
        return False
    with suppress(GitError):
        run_git(repository.root, "update-ref", "-d", f"refs/heads/{branch}", commit)
        return True
    return False

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
from agent_farm.launch import as_command

_PUSH_SECONDS = 3600.0
_FETCH_SECONDS = 600.0
_PUSHES = 5  # git there refuses one that meets a worktree which is being made, and has no commit yet
TOO_MUCH = "af: more came than may be fetched"  # said by the program that counts
_COMMIT = re.compile(OBJECT_NAME)
# On the command line they win over the person's files. What comes is checked, object by object.
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "protocol.allow=never",
    "protocol.ssh.allow=always",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
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

    @property
    def url(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"ssh://{self.destination}{port}{quote(self.directory)}"

    @property
    def environment(self) -> dict[str, str]:
        return {"GIT_SSH_COMMAND": self.ssh, "GIT_SSH_VARIANT": "ssh"}


def _git(repository: Repository, line: Line, *words: str, seconds: float) -> str:
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        return run_git(repository.root, *settings, *words, env=line.environment, timeout=seconds, apart=True)
    except GitError as error:
        if TOO_MUCH in error.stderr:
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


def fetch_refs(repository: Repository, line: Line, refs: Mapping[str, str]) -> None:
    """Each of theirs under the name that it is given here; only what is missing here travels."""
    pairs = (f"+{theirs}:{ours}" for theirs, ours in refs.items())
    words = (
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
        "--no-auto-maintenance", "--", line.url, *pairs,
    )  # fmt: skip
    _git(repository, line, *words, seconds=_FETCH_SECONDS)


def fetched_commit(repository: Repository, builder: str) -> str | None:
    with suppress(GitError):
        found = run_git(
            repository.root, "rev-parse", "--verify", "--quiet", f"{fetched_ref(builder)}^{{commit}}"
        ).strip()
        return found if _COMMIT.fullmatch(found) else None
    return None


def note_fetched(repository: Repository, builder: str, commit: str) -> None:
    """It came by another way than a fetch of its branch."""
    run_git(repository.root, "update-ref", fetched_ref(builder), commit)


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
    if now is not None and now != before:
        raise AgentFarmError(
            f"{branch} has been moved here",
            why="Neither the branch nor the builder's work was changed.",
            hint=as_command("git", "-C", repository.root, "log", "--oneline", f"{branch}...{commit}"),
        )
    from agent_farm.git.worktrees import branch_checked_out_at  # what moves nothing does without

    if (place := branch_checked_out_at(repository, branch)) is not None:
        raise AgentFarmError(
            f"{branch} is checked out in {place}",
            why="The builder has new commits, but a branch that is checked out is not moved.",
            hint=as_command("git", "-C", place, "switch", "--detach"),
        )
    run_git(repository.root, "update-ref", f"refs/heads/{branch}", commit, now or "")


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

"""Pushes a commit as a branch: the branch is created, or moved if it is still where it was seen."""

from __future__ import annotations

import os
from pathlib import Path

from agent_farm.errors import AgentFarmError
from agent_farm.git.git_process import ask_git, raise_git_error, run_git
from agent_farm.git.repository import Repository
from agent_farm.launch import as_command

_SECONDS = 300.0
_LOOKING_SECONDS = 60.0
_LINES = 20


class PushRejected(AgentFarmError):
    """The remote or a hook refused the push; the evidence is what it printed."""

    code = "push-rejected"


def remote_tip(repository: Repository, remote: str, branch: str) -> str | None:
    """Where the branch is on the remote now; None if it does not exist."""
    ref = f"refs/heads/{branch}"
    output = run_git(repository.root, "ls-remote", "--", remote, ref, timeout=_LOOKING_SECONDS, apart=True)
    rows = [line.split("\t") for line in output.splitlines()]
    return next((commit for commit, name in rows if name == ref), None)


def push_commit(
    repository: Repository, remote: str, commit: str, branch: str, *, seen: str | None, hooks: Path | None
) -> None:
    """PushRejected unless the branch on the remote is still at `seen` (None: does not exist yet)."""
    argv = (
        *("-c", f"core.hooksPath={hooks or os.devnull}"),
        *("push", "--quiet", f"--force-with-lease=refs/heads/{branch}:{seen or ''}"),
        *("--", remote, f"{commit}:refs/heads/{branch}"),
    )
    status, _, stderr = ask_git(repository.root, *argv, timeout=_SECONDS, apart=True)
    if status == 0:
        return
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    if status == 1:
        raise PushRejected(
            f"{remote} did not take {branch}",
            why="Somebody else has pushed there." if "stale info" in " ".join(lines) else None,
            evidence=[line for line in lines if not line.startswith("hint:")][-_LINES:],
            hint=as_command("git", "fetch", remote),
        )
    raise_git_error(argv, status, stderr)

"""The checkout of a farm whose home is another machine, from which settings, roles and butlers are read."""

from __future__ import annotations

import os
from pathlib import Path

from agent_farm.builders.ref_names import ObjectName
from agent_farm.errors import AgentFarmError
from agent_farm.git.git_process import GitError, ask_git, run_git
from agent_farm.launch import as_command


class NoCommit(AgentFarmError):
    """What home believes to be here never arrived, or was lost with a disk."""

    code = "no-commit"


def check_out(place: Path, commit: ObjectName, lock: int) -> None:
    """Check out the commit that a builder starts from: its settings, roles and protocols are read here.

    git inherits the lock, and keeps it if it outlives us. A checkout that was killed halfway is repeated;
    changes that anybody else made there are not overwritten.
    """
    begun = place / ".git/agent-farm-checkout"
    force = []
    if begun.exists():
        force = ["--force"]
        for name in ("index.lock", "HEAD.lock"):
            (place / ".git" / name).unlink(missing_ok=True)
    elif run_git(place, "rev-parse", "--quiet", "--verify", "HEAD", ok=(0, 1)).strip() == commit:
        return
    begun.touch()
    settings = ("-c", f"core.hooksPath={os.devnull}", "-c", "submodule.recurse=false")
    words = ("checkout", "--quiet", *force, "--detach", commit, "--")
    try:
        run_git(place, *settings, *words, pass_fds=(lock,))
    except GitError as error:
        if error.status < 0:  # killed, and not refused
            raise
        begun.unlink()
        if ask_git(place, "cat-file", "-e", f"{commit}^{{commit}}")[0]:
            raise NoCommit(f"{place} does not have {commit[:12]}") from error
        hint = as_command("git", "-C", place, "status")
        raise AgentFarmError(f"{place} cannot be checked out", why=error.why, hint=hint) from error
    begun.unlink()

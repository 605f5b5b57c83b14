"""Where a builder's work may have come to."""

from __future__ import annotations

from agent_farm.git.remotes import find_base
from agent_farm.git.repository import Repository


def landing_targets(repository: Repository, base: str | None) -> list[str]:
    """Where work counts as landed: the base, the main checkout's HEAD, every remote-tracking branch."""
    remote = repository.remote_branches()
    names = [base] if base else []
    if base and f"refs/remotes/{base}" in remote:  # landing on it is landing on the branch that follows it
        names += [f"refs/heads/{branch}" for branch in find_base(repository, base).branches]
    return [*names, "HEAD", *remote]

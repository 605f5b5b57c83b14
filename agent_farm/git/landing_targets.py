"""The places where a builder's work counts as landed."""

from __future__ import annotations

from agent_farm.git.remotes import find_base
from agent_farm.git.repository import Repository


def landing_targets(repository: Repository, base: str | None) -> list[str]:
    """The base, the main checkout's HEAD, and every remote-tracking branch."""
    remote = repository.remote_branches()
    names = [base] if base else []
    if base and f"refs/remotes/{base}" in remote:  # landing on the local branch that tracks it counts, too
        names += [f"refs/heads/{branch}" for branch in find_base(repository, base).branches]
    return [*names, "HEAD", *remote]

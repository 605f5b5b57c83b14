"""Bounds on what another machine sends, once unpacked: that can be any multiple of what arrived."""

from __future__ import annotations

from agent_farm.git.git_process import paths_of, run_git, run_git_bounded
from agent_farm.git.repository import Repository

MOST_TOLD = 64_000_000  # enough for half a million changed files
_GITLINK = "160000"
_LEAST_MEMORY = 64_000_000


def allocation_bound(most_bytes: int) -> dict[str, str]:
    """Limits the memory of the git that unpacks: a delta of a few bytes may expand to gigabytes."""
    return {"GIT_ALLOC_LIMIT": str(max(most_bytes, _LEAST_MEMORY))}


def changed_bytes(repository: Repository, commit: str, tree: str) -> int:
    """Size of the files in `tree` that differ from the commit. TooLong if there are too many to list."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", commit, tree)
    told = run_git_bounded(repository.root, *words, most_bytes=MOST_TOLD)
    items = iter(paths_of(told.decode("utf-8", "surrogateescape")))
    blobs = [facts.split()[3] for facts, _ in zip(items, items, strict=True) if facts.split()[1] != _GITLINK]
    wanted = "".join(f"{blob}\n" for blob in blobs if blob.strip("0"))
    if not wanted:
        return 0
    sizes = run_git(repository.root, "cat-file", "--batch-check=%(objectsize)", input=wanted.encode())
    return sum(map(int, sizes.splitlines()))

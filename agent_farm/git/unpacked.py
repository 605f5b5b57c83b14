"""How much there is in what another machine sent, once it is unpacked: any multiple of what came."""

from __future__ import annotations

from agent_farm.git.git_process import paths_of, run_git, run_git_bounded
from agent_farm.git.repository import Repository

MOST_TOLD = 64_000_000  # of half a million files that have changed
_GITLINK = "160000"
_LEAST_MEMORY = 64_000_000


def allocation_bound(most_bytes: int) -> dict[str, str]:
    """For the git that unpacks it: a delta of a few bytes may come to gigabytes."""
    return {"GIT_ALLOC_LIMIT": str(max(most_bytes, _LEAST_MEMORY))}


def changed_bytes(repository: Repository, commit: str, tree: str) -> int:
    """Of the files of `tree` that are not as in the commit. TooLong where they are too many to be listed."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", commit, tree)
    told = run_git_bounded(repository.root, *words, most_bytes=MOST_TOLD)
    items = iter(paths_of(told.decode("utf-8", "surrogateescape")))
    blobs = [facts.split()[3] for facts, _ in zip(items, items, strict=True) if facts.split()[1] != _GITLINK]
    wanted = "".join(f"{blob}\n" for blob in blobs if blob.strip("0"))
    if not wanted:
        return 0
    sizes = run_git(repository.root, "cat-file", "--batch-check=%(objectsize)", input=wanted.encode())
    return sum(map(int, sizes.splitlines()))

"""Bounds on what another machine sends, once unpacked: that can be any multiple of what arrived."""

from __future__ import annotations

from agent_farm.git.bounded import run_git_bounded
from agent_farm.git.git_process import run_git
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
    (blobs,) = new_blobs(told)
    if not blobs:
        return 0
    wanted = "".join(f"{blob}\n" for blob in blobs)
    sizes = run_git(repository.root, "cat-file", "--batch-check=%(objectsize)", input=wanted)
    return sum(map(int, sizes.splitlines()))


def new_blobs(output: bytes) -> list[list[str]]:
    """What `diff-tree -r -z --raw` says: the blobs of the second tree that are not in the first one at the
    same path. With `--stdin` those of each pair of trees follow the first, which is empty then."""
    found, at = [list[str]()], 0
    while at < len(output):
        if output[at : at + 1] != b":":  # the names of a pair
            at = output.index(b"\n", at) + 1
            found.append([])
            continue
        end = output.index(b"\0", at)
        _, mode, _, blob, _ = output[at + 1 : end].decode().split(" ")
        if mode != _GITLINK and blob.strip("0"):
            found[-1].append(blob)
        at = output.index(b"\0", end + 1) + 1
    return found

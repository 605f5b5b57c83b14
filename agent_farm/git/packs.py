"""Commits as packs, for machines that git itself cannot reach: only what the other one lacks is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.git.git_process import run_git, run_git_bytes
from agent_farm.git.unpacked import allocation_bound

_COMMIT = re.compile(OBJECT_NAME)
_OWN = "refs/agent-farm/"
_MOST_OWN, _MOST_OTHERS = 5000, 200
_SECONDS = 3600.0


def tips(root: Path) -> tuple[str, ...]:
    """What refs are at, the newest first; before them those of builders, whose checkpoints have no time."""
    words = ("for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname)")
    pairs = [
        (ref, commit)
        for commit, _, ref in (line.partition(" ") for line in run_git(root, *words).splitlines())
    ]
    own = [commit for ref, commit in pairs if ref.startswith(_OWN)][:_MOST_OWN]
    others = [commit for ref, commit in pairs if not ref.startswith(_OWN)][:_MOST_OTHERS]
    return tuple(dict.fromkeys([*own, *others]))


def commits_at(root: Path, refs: Collection[str]) -> dict[str, str]:
    """The commits of those that exist."""
    words = ("for-each-ref", "--format=%(objecttype) %(objectname) %(refname)", "--", *refs)
    rows = (line.split(" ", 2) for line in run_git(root, *words).splitlines())
    return {ref: commit for kind, commit, ref in rows if kind == "commit" and ref in refs}


def known_here(root: Path, commits: Iterable[str]) -> tuple[str, ...]:
    """Those of them that are commits here."""
    asked = [commit for commit in commits if _COMMIT.fullmatch(commit)][: _MOST_OWN + _MOST_OTHERS]
    if not asked:
        return ()
    found = run_git(
        root, "cat-file", "--batch-check=%(objectname) %(objecttype)", input="\n".join(asked) + "\n"
    )
    return tuple(words[0] for line in found.splitlines() if (words := line.split())[1:] == ["commit"])


def make_pack(root: Path, wanted: Collection[str], known: Collection[str], into: BinaryIO) -> int:
    """What is needed for these commits by whoever has those; how many bytes it is, which are read next.

    With `--shallow` git looks into the trees of all that is known. Otherwise it looks into those of parents
    alone, and a checkpoint, whose parent is no checkpoint, would travel whole each time.
    """
    lines = [*wanted, *(f"^{commit}" for commit in known)]
    words = ("pack-objects", "--revs", "--thin", "--shallow", "--stdout", "--delta-base-offset", "-q")
    run_git_bytes(root, *words, input="\n".join(lines) + "\n", output=into, timeout=_SECONDS)
    size = into.seek(0, os.SEEK_END)
    into.seek(0)
    return size


def take_pack(root: Path, pack: BinaryIO, *, most_bytes: int | None = None) -> None:
    """Every object is checked before it counts. GitError where unpacking one takes more memory than that."""
    pack.flush()
    os.lseek(pack.fileno(), 0, os.SEEK_SET)  # git reads on from where the descriptor is
    words = ("-c", "core.bigFileThreshold=16m", "index-pack", "--stdin", "--fix-thin", "--strict")
    env = allocation_bound(most_bytes) if most_bytes else None
    run_git_bytes(root, *words, input=pack, timeout=_SECONDS, env=env)


def set_refs(root: Path, refs: Mapping[str, str]) -> None:
    """Of commits whose whole history is here; GitError otherwise."""
    run_git(root, "rev-list", "--objects", "--quiet", *refs.values(), "--not", "--all", timeout=_SECONDS)
    lines = "".join(f"update {ref} {commit}\n" for ref, commit in refs.items())
    run_git(root, "update-ref", "--stdin", input=lines)

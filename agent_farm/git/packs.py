"""Sends commits as packs to machines that git cannot reach itself, with only what the other side lacks."""

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
_FEW = 20  # objects: more of them could be deltas that come to far more than the pack


def tips(root: Path) -> tuple[str, ...]:
    """The commits that refs name, newest first; af's own refs come before, as checkpoints carry no time."""
    words = ("for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname)")
    pairs = [
        (ref, commit)
        for commit, _, ref in (line.partition(" ") for line in run_git(root, *words).splitlines())
    ]
    own = [commit for ref, commit in pairs if ref.startswith(_OWN)][:_MOST_OWN]
    others = [commit for ref, commit in pairs if not ref.startswith(_OWN)][:_MOST_OTHERS]
    return tuple(dict.fromkeys([*own, *others]))


def commits_at(root: Path, refs: Collection[str]) -> dict[str, str]:
    """The commit at each ref; refs that do not exist are left out."""
    words = ("for-each-ref", "--format=%(objecttype) %(objectname) %(refname)", "--", *refs)
    rows = (line.split(" ", 2) for line in run_git(root, *words).splitlines())
    return {ref: commit for kind, commit, ref in rows if kind == "commit" and ref in refs}


def known_here(root: Path, commits: Iterable[str]) -> tuple[str, ...]:
    """Those of the commits that exist here."""
    asked = [commit for commit in commits if _COMMIT.fullmatch(commit)][: _MOST_OWN + _MOST_OTHERS]
    if not asked:
        return ()
    found = run_git(
        root, "cat-file", "--batch-check=%(objectname) %(objecttype)", input="\n".join(asked) + "\n"
    )
    return tuple(words[0] for line in found.splitlines() if (words := line.split())[1:] == ["commit"])


def make_pack(root: Path, wanted: Collection[str], known: Collection[str], into: BinaryIO) -> int:
    """Write a pack with what is needed for `wanted` by whoever has `known`; returns its size, and rewinds.

    `--shallow` makes git look into the trees of everything known. Otherwise it only looks into those of
    parents, and a checkpoint, whose parent is not the previous checkpoint, would travel whole each time.
    """
    lines = [*wanted, *(f"^{commit}" for commit in known)]
    words = ("pack-objects", "--revs", "--thin", "--shallow", "--stdout", "--delta-base-offset", "-q")
    run_git_bytes(root, *words, input="\n".join(lines) + "\n", output=into, timeout=_SECONDS)
    size = into.seek(0, os.SEEK_END)
    into.seek(0)
    return size


def take_pack(root: Path, pack: BinaryIO, *, most_bytes: int | None = None) -> None:
    """Take in a pack, checking every object. GitError if one takes more than `most_bytes` of memory.

    Like `git fetch`, it unpacks a pack of few objects: every pack that is kept makes git slower.
    """
    pack.flush()
    os.lseek(pack.fileno(), 0, os.SEEK_SET)  # git reads from the descriptor's position
    count = int.from_bytes(os.pread(pack.fileno(), 4, 8), "big")
    words = ("unpack-objects", "-q") if count < _FEW else ("index-pack", "--stdin", "--fix-thin")
    env = allocation_bound(most_bytes) if most_bytes else None
    settings = ("-c", "core.bigFileThreshold=16m")
    run_git_bytes(root, *settings, *words, "--strict", input=pack, timeout=_SECONDS, env=env)


def set_refs(root: Path, refs: Mapping[str, str]) -> None:
    """Set refs to commits whose whole history is here; GitError otherwise."""
    run_git(root, "rev-list", "--objects", "--quiet", *refs.values(), "--not", "--all", timeout=_SECONDS)
    lines = "".join(f"update {ref} {commit}\n" for ref, commit in refs.items())
    run_git(root, "update-ref", "--stdin", input=lines)

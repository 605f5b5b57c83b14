"""What a machine sends may come to any multiple of what it weighs: files, trees and deltas that are bombs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.git.bounded import TooLong, run_git_bounded
from agent_farm.git.checkpoint_reading import NoCheckpoint, read_checkpoints
from tests.conftest import Af
from tests.fleet.machines import Node
from tests.fleet.test_checkpoint_trouble import _BEGIN, _WORK, about, lie
from tests.fleet.test_checkpoints import kept
from tests.fleet.test_fleet import ok, spawned
from tests.gitrepo import git

_MB = 1 << 20
_TIMES = 100  # what a delta makes of its base


def length(number: int) -> bytes:
    """As packs have it: seven bits a byte, the last one without the highest."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def entry(kind: int, size: int, data: bytes, base: bytes = b"") -> bytes:
    head, rest = kind << 4 | size & 0xF, size >> 4
    begin = bytes([head | 0x80]) + length(rest) if rest else bytes([head])
    return begin + base + zlib.compress(data)


def blob_of_a_delta(farm: Path) -> str:
    """Of 100 MB, in a pack of 1 MB: a base that nothing compresses, and a delta that repeats it."""
    base = os.urandom(_MB)
    copy = b"\xc0\x10"  # of 0x100000 bytes, from the beginning
    delta = length(_MB) + length(_TIMES * _MB) + copy * _TIMES
    name = hashlib.sha1(b"blob %d\0" % len(base) + base, usedforsecurity=False)
    pack = b"PACK" + (2).to_bytes(4, "big") + (2).to_bytes(4, "big")
    pack += entry(3, len(base), base) + entry(7, len(delta), delta, name.digest())
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    subprocess.run(["git", "-C", farm, "index-pack", "--stdin"], input=pack, check=True, capture_output=True)
    whole = hashlib.sha1(b"blob %d\0" % (_TIMES * _MB), usedforsecurity=False)
    for _ in range(_TIMES):
        whole.update(base)
    return f"100644 blob {name.hexdigest()}\tbase\n100644 blob {whole.hexdigest()}\tlarge"


def blob_of_nothing(farm: Path) -> str:
    """100 MB of zeros."""
    with subprocess.Popen(
        ["git", "-C", farm, "hash-object", "-w", "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        said, _ = process.communicate(bytes(_TIMES * _MB))
    return f"100644 blob {said.decode().strip()}\tlarge"


def tree_of_trees(farm: Path, blob: str) -> str:
    """Ten million files in eight objects."""
    tree = git(farm, "mktree", input="".join(f"100644 blob {blob}\t{name}\n" for name in range(10)))
    for _ in range(6):
        tree = git(farm, "mktree", input="".join(f"040000 tree {tree}\t{name}\n" for name in range(10)))
    return tree


def commit(farm: Path, id: str, line: str) -> None:
    """On its branch there, with that line in its tree."""
    head = git(farm, "rev-parse", f"builder/{id}")
    tree = git(farm, "mktree", input=f"{git(farm, 'ls-tree', head)}\n{line}\n")
    made = git(farm, "-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-p", head, "-m", "x", tree)
    git(farm, "update-ref", f"refs/heads/builder/{id}", made)


def bytes_of(repo: Path) -> int:
    return sum(path.stat().st_size for path in (repo / ".git").rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("make", [blob_of_a_delta, blob_of_nothing])
def test_a_file_that_is_larger_than_what_came(
    make: Callable[[Path], str], af: Af, big: Node, repo: Path
) -> None:
    """Its commits are not taken, and no file of this repository is as large as it."""
    id = spawned(af, "--shell")
    ok(af, "config", "set", "fleet.fetch_megabytes", "5")
    commit(big.farms[0], id, make(big.farms[0]))
    before = bytes_of(repo)
    for words in (["merge", id], ["conflicts", id], ["prune", "--stop", "--discard-commits", id]):
        done = af(*words)
        assert "more than fleet.fetch_megabytes" in done.stderr, words
    assert git(repo, "rev-parse", f"builder/{id}") == git(repo, "rev-parse", "main")
    assert bytes_of(repo) - before < 10 * _MB


@pytest.mark.slow
def test_a_tree_of_very_many_files(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    farm = big.farms[0]
    blob = git(farm, "rev-parse", "HEAD:README.md")
    commit(farm, id, f"040000 tree {tree_of_trees(farm, blob)}\tdeep")
    done = af("merge", id)
    assert "more than fleet.fetch_megabytes" in done.stderr
    assert git(repo, "rev-parse", f"builder/{id}") == git(repo, "rev-parse", "main")


@pytest.mark.slow
def test_a_checkpoint_of_very_many_files(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    ok(af, "fleet", "checkpoint")
    before = git(repo, "rev-parse", kept(id))
    farm = big.farms[0]
    tree = tree_of_trees(farm, git(farm, "rev-parse", "HEAD:README.md"))
    lie(big, id, _BEGIN + _WORK + b"M 040000 %s work/deep\n" % tree.encode() + about(id))
    done = af("fleet", "checkpoint")
    assert done.returncode == 1, done.stdout
    assert git(repo, "rev-parse", kept(id)) == before


def test_what_git_says_is_bounded(repo: Path) -> None:
    blob = git(repo, "rev-parse", "HEAD:README.md")
    tree = tree_of_trees(repo, blob)
    before = psutil.Process().memory_info().rss
    with pytest.raises(TooLong):
        run_git_bounded(repo, "ls-tree", "-r", tree, most_bytes=_MB)
    assert psutil.Process().memory_info().rss - before < 20 * _MB
    assert run_git_bounded(repo, "rev-parse", tree, most_bytes=_MB).decode().strip() == tree


def test_a_checkpoint_that_names_one_tree_very_often_is_not_read_whole(repo: Path) -> None:
    """150 MB of answers from git, of two trees of 80 kB each."""
    blob = git(repo, "rev-parse", "HEAD:README.md")
    files = git(repo, "mktree", input="".join(f"100644 blob {blob}\t{name}\n" for name in range(2000)))
    run = git(repo, "mktree", input="".join(f"040000 tree {files}\t{name}\n" for name in range(2000)))
    work = git(repo, "rev-parse", "HEAD^{tree}")
    top = git(repo, "mktree", input=f"040000 tree {run}\trun\n040000 tree {work}\twork\n")
    made = git(repo, "commit-tree", "-p", "HEAD", "-m", "x", top)
    git(repo, "update-ref", "refs/agent-farm/x", made)
    tracemalloc.start()
    try:
        (found,) = read_checkpoints(
            open_farm(repo).repository, ["refs/agent-farm/x"], most_bytes=_MB
        ).values()
        assert tracemalloc.get_traced_memory()[1] < 140 * _MB
    finally:
        tracemalloc.stop()
    assert isinstance(found, NoCheckpoint)

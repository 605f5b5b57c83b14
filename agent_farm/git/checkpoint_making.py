"""Makes checkpoints: one commit with a worktree's files, its index, and files about it.

Its parents are the commit that is checked out and the tip of the branch. The worktree's files, index and refs
are not touched: git works with an index of our own, which remembers what it has read between checkpoints.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.ref_names import ObjectName
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError
from agent_farm.git.checkout import BuilderTree, Head
from agent_farm.git.checkpoint_rate import budget_of, choose, lines_again, note_taken
from agent_farm.git.git_process import GitError, paths_of, run_git
from agent_farm.git.repository import Repository

WORK, INDEX = "work", "index"
_OWN_INDEX = "agent-farm-checkpoint"
_SEEN = "agent-farm-checkpoint-of"
_OLD_SECONDS = 600.0  # longer than a call waits for a checkpoint
_PLAIN = ("-c", "core.splitIndex=false", "-c", "core.untrackedCache=false")
_WHO = "agent-farm <agent-farm@localhost>"


class TreeContents(Struct, frozen=True):
    """What a worktree holds: the trees of its files and of its index, the latter None if that is unmerged.

    `left_out` names files that are too large or cannot be read, nested repositories, and large files that
    the budget does not allow yet.
    """

    head: str
    branch: str | None
    work: str
    index: str | None
    left_out: tuple[str, ...]


class _Seen(Struct, frozen=True):
    """What our index was made from: `index` identifies the worktree's index at that time, `staged` is its
    tree (None if unmerged). `work` is the tree of our own index when that was `own`."""

    index: str
    staged: ObjectName | None
    own: str = ""
    work: ObjectName | None = None


def checkpoint_ref(builder: str) -> str:
    """The ref of its last checkpoint, on the machine that makes it."""
    return f"refs/agent-farm/checkpoint/{builder}"


def hold_worktree(tree: BuilderTree, *, most_bytes: int, head: Head | None = None) -> TreeContents:
    """Store the trees in the repository, without ignored files. `head` saves a git process if it is known."""
    head = head or tree.head()
    try:
        return _held(tree, head, most_bytes)
    except GitError:
        _begin_anew(tree)
        return _held(tree, head, most_bytes)


def _begin_anew(tree: BuilderTree) -> None:
    """Start over with a new index: a git that was killed, or a power failure, may have left ours damaged or
    locked. A lock that is not old may belong to a git at work."""
    own = tree.git_dir / _OWN_INDEX
    lock = own.with_name(f"{own.name}.lock")
    with suppress(FileNotFoundError):
        if abs(time.time() - lock.lstat().st_mtime) > _OLD_SECONDS:
            lock.unlink()
    for path in (tree.git_dir / _SEEN, own):
        path.unlink(missing_ok=True)


def _held(tree: BuilderTree, head: Head, most_bytes: int) -> TreeContents:
    own = {"GIT_INDEX_FILE": str(tree.git_dir / _OWN_INDEX)}
    seen = _start_from_index(tree)
    names = ("ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard")
    listed = dict.fromkeys(paths_of(tree.run(*_PLAIN, *names, env=own)))
    left_out = tuple(path for path in listed if _is_left_out(tree.path / path, most_bytes))
    if seen.work and listed.keys() <= set(left_out) and seen.own == _mark(tree.git_dir / _OWN_INDEX):
        return TreeContents(head.commit, head.branch, seen.work, seen.staged, left_out)
    budget = budget_of(tree)
    chosen = choose(tree, budget, [path for path in listed if path not in left_out])
    later = {*left_out, *chosen.waits}
    if taken := "".join(f"{path}\0" for path in listed if path not in later):
        tree.run(*_PLAIN, "update-index", "--add", "--remove", "-z", "--stdin", input=taken, env=own)
    if again := lines_again(tree, chosen):
        tree.run(*_PLAIN, "update-index", "-z", "--index-info", input=again, env=own)
    note_taken(tree, budget, chosen, own)
    work = tree.run(*_PLAIN, "write-tree", env=own).strip()
    store(tree.git_dir / _SEEN, replace(seen, own=_mark(tree.git_dir / _OWN_INDEX), work=work))
    unknown = (path for path in chosen.waits if path not in chosen.again)
    return TreeContents(head.commit, head.branch, work, seen.staged, (*left_out, *unknown))


def _is_left_out(path: Path, most_bytes: int) -> bool:
    """Too large, or unreadable: git would then refuse to add anything at all."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    if stat.S_ISLNK(facts.st_mode):
        return False
    if stat.S_ISDIR(facts.st_mode):
        return not (path / ".git").is_file()
    return not stat.S_ISREG(facts.st_mode) or facts.st_size > most_bytes or not os.access(path, os.R_OK)


def _start_from_index(tree: BuilderTree) -> _Seen:
    """Copy the worktree's index to ours, if it has changed since the last copy."""
    mark, copy, seen = _mark(tree.index), tree.git_dir / _OWN_INDEX, tree.git_dir / _SEEN
    with suppress(AgentFarmError):  # `seen` lies where the builder can write
        known = load_if_whole(seen, _Seen)
        if known is not None and known.index == mark and copy.is_file():
            return known
    seen.unlink(missing_ok=True)
    if mark:
        shutil.copy2(tree.index, copy)  # keeps its time, which git compares with those of the files
    else:
        copy.unlink(missing_ok=True)
    status, output, _ = tree.ask(*_PLAIN, "write-tree", env={"GIT_INDEX_FILE": str(copy)})
    found = _Seen(mark, output.decode().strip() if status == 0 else None)
    store(seen, found)
    return found


def _mark(index: Path) -> str:
    try:
        facts = index.stat()
    except FileNotFoundError:
        return ""
    return f"{facts.st_ino} {facts.st_mtime_ns} {facts.st_size}"


def store_checkpoint(
    repository: Repository, ref: str, held: TreeContents, tip: str | None, files: Mapping[str, bytes]
) -> str:
    """Make the commit, and have `ref` name it."""
    parents = list(dict.fromkeys([held.head, *([tip] if tip else [])]))
    parts: list[bytes] = [
        f"commit {ref}\ncommitter {_WHO} 0 +0000\ndata 0\nfrom {parents[0]}\n".encode(),
        *(f"merge {parent}\n".encode() for parent in parents[1:]),
        b"deleteall\n",
        f"M 040000 {held.work} {WORK}\n".encode(),
        *([f"M 040000 {held.index} {INDEX}\n".encode()] if held.index else []),
    ]
    for path, content in files.items():
        parts += [f"M 100644 inline {path}\ndata {len(content)}\n".encode(), content, b"\n"]
    run_git(repository.root, "fast-import", "--quiet", "--force", "--date-format=raw", input=b"".join(parts))
    return run_git(repository.root, "rev-parse", "--verify", ref).strip()


def known_checkpoints(repository: Repository, builders: Collection[str]) -> dict[str, str]:
    """The last checkpoint of each builder; drops those of builders that no longer exist."""
    prefix = checkpoint_ref("")
    rows = run_git(repository.root, "for-each-ref", "--format=%(objectname) %(refname)", prefix).splitlines()
    found = {ref.removeprefix(prefix): commit for commit, _, ref in (row.partition(" ") for row in rows)}
    if gone := [id for id in found if id not in builders]:
        lines = "".join(f"delete {checkpoint_ref(id)}\n" for id in gone)
        run_git(repository.root, "update-ref", "--stdin", input=lines.encode())
    return {id: commit for id, commit in found.items() if id not in gone}


def is_name(path: str) -> bool:
    """Whether `git fast-import` accepts the name without quoting."""
    return path.isprintable() and not path.startswith('"') and "\n" not in path

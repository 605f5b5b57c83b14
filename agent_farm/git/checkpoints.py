"""A checkpoint that another machine made: fetched beside the last one, checked, and kept or dropped."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count

from msgspec import Struct

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.errors import AgentFarmError
from agent_farm.git.checkpoint_making import INDEX, WORK
from agent_farm.git.git_process import GitError, ask_git, paths_of, run_git, run_git_bytes
from agent_farm.git.repository import Repository
from agent_farm.paths import is_below

_OBJECT = re.compile(OBJECT_NAME)
_SET_ASIDE = re.compile(r"refs/agent-farm/fleet/([^@/]+)@([0-9]{1,12})(?:-fetched|-branch)?")
_FIRST_TIME = 1_000_000_000
_MOST_FILES = 20_000
_FILE = "100644"


class Checkpoint(Struct, frozen=True):
    """`files` are those that belong to the worktree, by their names in it: blob and size."""

    commit: str
    parents: tuple[str, ...]
    work: str
    index: str | None
    files: Mapping[str, tuple[str, int]]


class NoCheckpoint(AgentFarmError):
    """What is called one cannot be believed."""

    code = "checkpoint"


def kept_ref(builder: str) -> str:
    """Where the last one lies that was believed; no id of a builder has an @."""
    return f"refs/agent-farm/fleet/{builder}@checkpoint"


def coming_ref(ref: str) -> str:
    """The ref of a fetched checkpoint that is not checked yet, and that may replace that one."""
    return f"{ref}-coming"


def left_ref(builder: str, term: int) -> str:
    """What a builder had on a machine from which it was placed elsewhere."""
    return f"refs/agent-farm/fleet/{builder}@{term}"


def read_checkpoint(repository: Repository, ref: str, *, most_bytes: int) -> Checkpoint:
    """NoCheckpoint where it has another form, or is larger than may be."""
    try:
        return _read(repository, ref, most_bytes)
    except (GitError, ValueError) as error:
        raise NoCheckpoint("The fetched commit is not a checkpoint", why=str(error)) from error


def _read(repository: Repository, ref: str, most_bytes: int) -> Checkpoint:
    commit = run_git(repository.root, "rev-parse", "--verify", "--quiet", ref).strip()
    head = run_git(repository.root, "cat-file", "commit", commit).partition("\n\n")[0].splitlines()
    parents = tuple(line.removeprefix("parent ") for line in head if line.startswith("parent "))
    if not 1 <= len(parents) <= 2:
        raise ValueError(f"It has {len(parents)} parents.")
    trees, files = dict[str, str](), dict[str, tuple[str, int]]()
    for mode, kind, name, _, path in _entries(repository, commit):
        if kind == "tree" and path in (WORK, INDEX):
            trees[path] = name
        elif not (kind == "tree" and path in ("run", "talk")) and (mode, path) != (_FILE, "about.json"):
            raise ValueError(f"It holds {path!r:.80}.")
    if WORK not in trees:
        raise ValueError("It contains no worktree.")
    for mode, kind, name, size, path in _entries(
        repository, commit, "-r", "-l", "--", "run", "talk", "about.json"
    ):
        if mode != _FILE or kind != "blob" or not is_below(path):
            raise ValueError(f"{path!r:.80} is not a regular file.")
        files[path] = (name, size)
    total = sum(size for _, size in files.values())
    for tree in trees.values():
        total += _changed_bytes(repository, parents[0], tree)
    if total > most_bytes or len(files) > _MOST_FILES:
        raise ValueError(f"It contains {len(files)} files and {total} bytes.")
    return Checkpoint(commit, parents, trees[WORK], trees.get(INDEX), files)


def _entries(repository: Repository, commit: str, *words: str) -> Iterator[tuple[str, str, str, int, str]]:
    options = [word for word in words if word.startswith("-") and word != "--"]
    rest = [word for word in words if word not in options]
    for line in paths_of(run_git(repository.root, "ls-tree", "-z", *options, commit, *rest)):
        facts, _, path = line.partition("\t")
        mode, kind, name, *size = facts.split()
        yield mode, kind, name, int(size[0]) if size and size[0] != "-" else 0, path


def _changed_bytes(repository: Repository, commit: str, tree: str) -> int:
    """Of the files that are not as in the commit, once they are unpacked."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", commit, tree)
    items = iter(paths_of(run_git(repository.root, *words)))
    blobs = [facts.split()[3] for facts, _ in zip(items, items, strict=True) if facts.split()[1] != "160000"]
    wanted = "".join(f"{blob}\n" for blob in blobs if blob.strip("0"))
    if not wanted:
        return 0
    sizes = run_git(repository.root, "cat-file", "--batch-check=%(objectsize)", input=wanted.encode())
    return sum(map(int, sizes.splitlines()))


def read_file(repository: Repository, found: Checkpoint, path: str) -> bytes:
    """A file that was stored in parts, or whole; b"" where there is none."""
    parts = (
        [path] if path in found.files else sorted(name for name in found.files if name.startswith(f"{path}/"))
    )
    return b"".join(
        run_git_bytes(repository.root, "cat-file", "blob", found.files[part][0]) for part in parts
    )


def keep(repository: Repository, coming: str, commit: str, ref: str) -> None:
    """It has been checked, and replaces the last one in one step."""
    lines = f"start\nupdate {ref} {commit}\ndelete {coming}\ncommit\n"
    run_git(repository.root, "update-ref", "--stdin", input=lines.encode())


def keep_newer(repository: Repository, builder: str, branch: str) -> list[str]:
    """Refs of commits that came home, or were made here, and that its checkpoint does not go on from: its
    branch and what is fetched next take the place of what names them now."""
    kept = list[str]()
    for name, ref in (("fetched", f"refs/agent-farm/fleet/{builder}"), ("branch", f"refs/heads/{branch}")):
        commit = commit_at(repository, ref)
        if commit is None or _is_in(repository, commit, kept_ref(builder)):
            continue
        if not any(_is_in(repository, commit, other) for other in kept):
            kept.append(_free_name(repository, builder, commit, f"-{name}"))
            run_git(repository.root, "update-ref", kept[-1], commit)
    return kept


def _free_name(repository: Repository, builder: str, commit: str, end: str = "") -> str:
    """By the time, which says when it may expire; no term is as high as a time."""
    names = (f"{left_ref(builder, number)}{end}" for number in count(int(time.time())))
    return next(name for name in names if commit_at(repository, name) in (None, commit))


def drop_set_aside(repository: Repository, limit: float) -> Iterator[tuple[str, int]]:
    """The builder and the time, of what was put aside at `limit` or before."""
    rows = run_git(
        repository.root, "for-each-ref", "--format=%(refname)", "refs/agent-farm/fleet"
    ).splitlines()
    for ref in rows:
        found = _SET_ASIDE.fullmatch(ref)
        if found is not None and _FIRST_TIME < int(found[2]) <= limit:
            drop(repository, ref)
            yield found[1], int(found[2])


def _is_in(repository: Repository, commit: str, ref: str) -> bool:
    status, _, _ = ask_git(repository.root, "merge-base", "--is-ancestor", commit, ref)
    return status == 0


def set_aside(repository: Repository, builder: str) -> str | None:
    """The last checkpoint under a name of its own: another builder may be given that id."""
    commit = commit_at(repository, kept_ref(builder))
    if commit is None:
        return None
    ref = _free_name(repository, builder, commit)
    keep(repository, kept_ref(builder), commit, ref)
    return ref


def drop(repository: Repository, *refs: str) -> None:
    for ref in refs:
        with suppress(GitError):
            run_git(repository.root, "update-ref", "-d", ref)


def commit_at(repository: Repository, ref: str) -> str | None:
    with suppress(GitError):
        found = run_git(repository.root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").strip()
        return found if _OBJECT.fullmatch(found) else None
    return None

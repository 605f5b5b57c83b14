"""Refuses to land a commit that points to a submodule's commit which nobody else has."""

from __future__ import annotations

import os
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import read_plain
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import Checkout
from agent_farm.git.entries import changes_between
from agent_farm.git.git_process import ask_git
from agent_farm.git.registrations import linked_git_dir
from agent_farm.launch import as_command

_LONGEST = 16_384
_REFS = 4_000_000  # bytes of a file with all references


class UnknownPointer(AgentFarmError):
    """The evidence names submodules and their commits."""

    code = "unknown-submodule-commit"


def require_known_pointers(
    farm: Farm, checkout: Checkout, record: BuilderRecord, before: str, after: str
) -> None:
    """Raise unless each new submodule commit is in the checkout's own, or on a remote the builder saw."""
    changes = changes_between(checkout, before, after)
    pointers = {path: new.blob for path, (_, new) in changes.items() if new and new.is_submodule}
    lost = [
        (path, commit)
        for path, commit in pointers.items()
        if not _has(farm, checkout.path / path, commit)
        and _only_there(farm, record.worktree_path / path, commit)
    ]
    if lost:
        path = lost[0][0]
        raise UnknownPointer(
            f"{record.id} points to a commit of the submodule {path} that exists nowhere else",
            why="Nothing was merged: whoever updates that submodule would not find it.",
            evidence=[f"{path} {commit}" for path, commit in lost],
            hint=as_command("git", "-C", record.worktree_path / path, "push", "origin", "HEAD"),
        )


def _has(farm: Farm, submodule: Path, commit: str) -> bool:
    """Whether the submodule in the user's own checkout has the commit."""
    git_dir = _git_dir(submodule)
    return git_dir is not None and not _asked(farm, git_dir, "cat-file", "-e", f"{commit}^{{commit}}")[0]


def _only_there(farm: Farm, submodule: Path, commit: str) -> bool:
    """Whether the commit is on none of the remote branches of the builder's own submodule."""
    git_dir = _git_dir(submodule)
    if git_dir is None or _asked(farm, git_dir, "cat-file", "-e", f"{commit}^{{commit}}")[0]:
        return False  # it came from elsewhere
    remotes = [f"^{hash}" for hash in _remote_tips(git_dir)]
    given = "".join(f"{line}\n" for line in (commit, *remotes))
    status, output, _ = _asked(
        farm, git_dir, "rev-list", "--max-count=1", "--ignore-missing", "--stdin", given=given
    )
    return bool(status or output.strip())


def _git_dir(submodule: Path) -> Path | None:
    found = linked_git_dir(submodule / ".git") or submodule / ".git"
    return found if (found / "objects").is_dir() else None


def _asked(farm: Farm, git_dir: Path, *args: str, given: str = "") -> tuple[int, bytes, bytes]:
    """Ask by this repository's settings over the submodule's objects: its own configuration runs nothing."""
    env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{_escaped(git_dir / "objects")}"'}
    return ask_git(farm.root, *args, env=env, input=given)


def _escaped(path: Path) -> str:
    return os.fspath(path).replace("\\", "\\\\").replace('"', '\\"')


def _remote_tips(git_dir: Path) -> list[str]:
    """Read as files, because the directory is the builder's."""
    found = []
    for where, _, names in os.walk(git_dir / "refs/remotes"):
        found += [_first_word(Path(where) / name) for name in names]
    try:
        packed = read_plain(git_dir / "packed-refs", limit=_REFS).decode("utf-8", "replace").splitlines()
    except OSError:
        packed = []
    found += [line.partition(" ")[0] for line in packed if " refs/remotes/" in line]
    return [hash for hash in found if len(hash) == 40 and set(hash) <= set("0123456789abcdef")]


def _first_word(file: Path) -> str:
    try:
        return read_plain(file, limit=_LONGEST).decode("ascii", "replace").strip()
    except OSError:
        return ""

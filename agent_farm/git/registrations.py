"""What git keeps on file about linked worktrees, read as short, plain files: no process, and nothing hangs.

`<common>/worktrees/<name>/gitdir` names the worktree's `.git`, which names that directory in turn.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import read_plain, replace_file, stale_temporaries

_LONGEST = 1 << 20  # bytes of a file that others may have written
_GIT_FILE = "gitdir: "
_BRANCH = "ref: refs/heads/"

# What `sparse.py` writes into the repository's configuration for a worktree, and the file that it names.
INCLUDED = "agent-farm-sparse"
SPARSE_SECTION = re.compile(
    rb'^\[includeIf "gitdir:\./worktrees/([\w.-]+)"\]\n\tpath = ' + INCLUDED.encode() + rb"\n", re.MULTILINE
)


class Registration(Struct, frozen=True):
    """git's directory about one linked worktree, and the worktree it names, which may be gone."""

    admin: Path
    tree: Path

    @property
    def is_whole(self) -> bool:
        return bool(line_of(self.admin / "commondir"))

    @property
    def locked(self) -> str | None:
        """Why it is locked: "" for a lock without a reason."""
        return line_of(self.admin / "locked") if os.path.lexists(self.admin / "locked") else None


def registrations(common_dir: Path) -> Iterator[Registration]:
    for admin in sorted((common_dir / "worktrees").glob("*")):
        place = line_of(admin / "gitdir")
        if place and not admin.is_symlink() and os.path.basename(place) == ".git":
            yield Registration(admin, Path(os.path.normpath(admin / place)).parent)


def registration_at(common_dir: Path, path: Path) -> Registration | None:
    """Of the worktree at `path`, also when that is gone."""
    wanted = os.path.realpath(path)
    return next((one for one in registrations(common_dir) if os.path.realpath(one.tree) == wanted), None)


def linked_git_dir(git_file: Path) -> Path | None:
    """Where a `.git` file points; None if it is not such a file."""
    target = line_of(git_file)
    return git_file.parent / target.removeprefix(_GIT_FILE) if target.startswith(_GIT_FILE) else None


def branch_in(git_dir: Path) -> str | None:
    """The branch that HEAD names there, None when it is detached; `.invalid` where files do not say it."""
    head = line_of(git_dir / "HEAD")
    return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else None


def connect(admin: Path, tree: Path) -> None:
    """The two name each other, by these paths; what a killed `af` left of this very step goes.

    A worktree that is not there is named all the same. `git worktree repair` alone does not do: it starts
    from the paths on record, and in a copied repository it would take over the original's worktrees.
    """
    if os.path.lexists(tree):
        for left in stale_temporaries(tree):
            if left.name.startswith("..git."):
                left.unlink()
        if line_of(tree / ".git") != f"{_GIT_FILE}{admin}":
            replace_file(tree / ".git", f"{_GIT_FILE}{admin}\n", mode=0o644)
    if line_of(admin / "gitdir") != os.fspath(tree / ".git"):
        replace_file(admin / "gitdir", os.fsencode(tree / ".git") + b"\n", mode=0o644)


def line_of(file: Path) -> str:
    """The one line of a small file; nothing where there is none that can be read."""
    with suppress(OSError):
        return os.fsdecode(read_plain(file, limit=_LONGEST)).rstrip("\r\n")
    return ""

"""git's records of linked worktrees, read as short, plain files: no process is needed, and nothing can hang.

`<common>/worktrees/<name>/gitdir` names the worktree's `.git`, which in turn names that directory.
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

# What `sparse.py` adds to the repository's configuration for a worktree, and the file named there.
INCLUDED = "agent-farm-sparse"
SPARSE_SECTION = re.compile(
    rb'^\[includeIf "gitdir:\./worktrees/([\w.-]+)"\]\n\tpath = ' + INCLUDED.encode() + rb"\n", re.MULTILINE
)


class Registration(Struct, frozen=True):
    """git's directory about one linked worktree (`admin`), and the worktree it names, which may be gone."""

    admin: Path
    tree: Path

    @property
    def is_whole(self) -> bool:
        return bool(line_of(self.admin / "commondir"))

    @property
    def locked(self) -> str | None:
        """Why it is locked, "" if no reason was given; None if it is not."""
        return line_of(self.admin / "locked") if os.path.lexists(self.admin / "locked") else None


def registrations(common_dir: Path) -> Iterator[Registration]:
    for admin in sorted((common_dir / "worktrees").glob("*")):
        place = line_of(admin / "gitdir")
        if place and not admin.is_symlink() and os.path.basename(place) == ".git":
            yield Registration(admin, Path(os.path.normpath(admin / place)).parent)


def registration_at(common_dir: Path, path: Path) -> Registration | None:
    """The record of the worktree at `path`, even if that is gone."""
    wanted = os.path.realpath(path)
    return next((one for one in registrations(common_dir) if os.path.realpath(one.tree) == wanted), None)


def linked_git_dir(git_file: Path) -> Path | None:
    """Where a `.git` file points; None if it is no such file."""
    target = line_of(git_file)
    return git_file.parent / target.removeprefix(_GIT_FILE) if target.startswith(_GIT_FILE) else None


def branch_in(git_dir: Path) -> str | None:
    """The branch that HEAD there names, None if it is detached; `.invalid` if the files do not tell."""
    head = line_of(git_dir / "HEAD")
    return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else None


def connect(admin: Path, tree: Path) -> None:
    """Make the two name each other by these paths; removes what an `af` killed in this very step left.

    This also works for a worktree that does not exist. `git worktree repair` is not enough: it starts from
    the recorded paths, and in a copied repository it would take over the original's worktrees.
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
    """The only line of a small file; "" if it cannot be read."""
    with suppress(OSError):
        return os.fsdecode(read_plain(file, limit=_LONGEST)).rstrip("\r\n")
    return ""

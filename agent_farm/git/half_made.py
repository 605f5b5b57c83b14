"""What a git that was killed in the middle of `worktree add` leaves behind, and how it goes away.

Such a registration is worse than untidy: while one lacks its `commondir`, git fails on every worktree of
the repository, and one that is still locked as "initializing" can be removed by no git command.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import read_plain
from agent_farm.git.finding import linked_git_dir
from agent_farm.git.repository import Repository

_LONGEST = 16_384  # bytes of a file that holds a path or a name


def drop_half_made(repository: Repository, path: Path) -> None:
    """Forget what was begun for `path`; files of anybody's in it stay. The caller keeps git from adding."""
    for admin in _unfinished(repository, path):
        if _leads_to(path / ".git", admin):
            (path / ".git").unlink()
        shutil.rmtree(admin, ignore_errors=True)
    _drop_empty_git_file(path)
    with suppress(OSError):
        (repository.common_dir / "worktrees").rmdir()


def drop_stale_ref_lock(repository: Repository, branch: str) -> None:
    """The lock file of a git that was killed while it made or deleted the branch."""
    (repository.common_dir / "refs/heads" / f"{branch}.lock").unlink(missing_ok=True)


def _unfinished(repository: Repository, path: Path) -> Iterator[Path]:
    """Registrations that git never finished: of this path, or so young that they only have its name."""
    named = re.compile(re.escape(path.name) + r"\d*")
    for admin in (repository.common_dir / "worktrees").glob("*"):
        place = _text(admin / "gitdir")
        if place:
            is_ours = os.path.realpath(place) == os.path.realpath(path / ".git")
        else:
            is_ours = named.fullmatch(admin.name) is not None
        if is_ours and _was_never_finished(admin):
            yield admin


def _was_never_finished(admin: Path) -> bool:
    """git takes its own lock away at the end; before that it writes HEAD and commondir."""
    return _text(admin / "locked") == "initializing" or not _text(admin / "commondir")


def _leads_to(git_file: Path, admin: Path) -> bool:
    target = linked_git_dir(git_file)
    return target is not None and os.path.realpath(target) == os.path.realpath(admin)


def _drop_empty_git_file(path: Path) -> None:
    git_file = path / ".git"
    if git_file.is_file() and not git_file.is_symlink() and git_file.stat().st_size == 0:
        git_file.unlink()


def _text(file: Path) -> str:
    try:
        return os.fsdecode(read_plain(file, limit=_LONGEST)).strip()
    except OSError:
        return ""

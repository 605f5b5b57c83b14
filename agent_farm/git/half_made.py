"""Finds and removes what a git that was killed during `worktree add` leaves behind.

Such a registration does harm: while one lacks its `commondir`, git fails in every worktree of the
repository, and no git command removes one that is still locked as "initializing".
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import read_plain
from agent_farm.git.checkout import BuilderTree
from agent_farm.git.git_process import paths_of, run_git_bytes
from agent_farm.git.registrations import line_of, linked_git_dir
from agent_farm.git.repository import Repository


def drop_half_made(repository: Repository, path: Path) -> None:
    """Remove what was begun for `path`, but no files in it. The caller keeps other gits from adding any."""
    git_file = path / ".git"
    for admin in _unfinished(repository, path):
        target = linked_git_dir(git_file)
        if target is not None and os.path.realpath(target) == os.path.realpath(admin):
            git_file.unlink()
        shutil.rmtree(admin, ignore_errors=True)
    if git_file.is_file() and not git_file.is_symlink() and git_file.stat().st_size == 0:
        git_file.unlink()
    with suppress(OSError):
        (repository.common_dir / "worktrees").rmdir()


def drop_stale_ref_lock(repository: Repository, branch: str) -> None:
    """Remove the lock file of a git that was killed while it made or deleted the branch."""
    (repository.common_dir / "refs/heads" / f"{branch}.lock").unlink(missing_ok=True)


def own_content(repository: Repository, path: Path, commit: str) -> list[str]:
    """Files that do not come from a checkout of `commit`, ignored ones included.

    A missing or truncated file does come from one: a checkout that was killed leaves such files.
    """
    import tempfile  # takes 3 ms, and is only needed after a failure

    tree = BuilderTree(path, repository.common_dir, repository.common_dir)
    here = ("-c", "core.bare=false")
    with tempfile.TemporaryDirectory(prefix="af-index-") as directory:
        index = {"GIT_INDEX_FILE": os.path.join(directory, "index")}
        tree.run(*here, "read-tree", commit, env=index)
        others = paths_of(tree.run(*here, "ls-files", "-z", "--others", env=index))
        differing = ("diff-files", "-z", "--name-only", "--diff-filter=MT")
        changed = paths_of(tree.run(*here, *differing, env=index))
    beyond = [name for name in others if name != ".git" and not name.startswith(".git/")]
    return beyond + [name for name in changed if not _ends_early(repository, path / name, f"{commit}:{name}")]


def _unfinished(repository: Repository, path: Path) -> Iterator[Path]:
    """Registrations of this path that git never finished, or whose path it had not written yet.

    git takes its own lock away at the end; before that it writes HEAD and commondir.
    """
    named = re.compile(re.escape(path.name) + r"\d*")
    for admin in (repository.common_dir / "worktrees").glob("*"):
        place = line_of(admin / "gitdir")
        if place:
            is_ours = os.path.realpath(place) == os.path.realpath(path / ".git")
        else:
            is_ours = named.fullmatch(admin.name) is not None
        if is_ours and (line_of(admin / "locked") == "initializing" or not line_of(admin / "commondir")):
            yield admin


def _ends_early(repository: Repository, file: Path, blob: str) -> bool:
    # written as a checkout does: with this repository's line endings and filters
    whole = run_git_bytes(repository.root, "cat-file", "--filters", blob)
    try:
        return whole.startswith(read_plain(file, limit=len(whole)))
    except OSError:  # it is a link, say, or longer than the blob
        return False

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
from agent_farm.git.checkout import BuilderTree
from agent_farm.git.git_process import paths_of, run_git_bytes
from agent_farm.git.registrations import line_of, linked_git_dir
from agent_farm.git.repository import Repository


def drop_half_made(repository: Repository, path: Path) -> None:
    """Forget what was begun for `path`; files of anybody's in it stay. The caller keeps git from adding."""
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
    """The lock file of a git that was killed while it made or deleted the branch."""
    (repository.common_dir / "refs/heads" / f"{branch}.lock").unlink(missing_ok=True)


def own_content(repository: Repository, path: Path, commit: str) -> list[str]:
    """Paths of files that a checkout of `commit` does not explain, ignored ones included.

    Files that are missing, or end early, are explained: a checkout that was killed leaves such.
    """
    import tempfile  # 3 ms, where something has failed

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
    """Registrations that git never finished: of this path, or so young that they only have its name.

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
    # as a checkout writes it: with line endings and filters of this repository
    whole = run_git_bytes(repository.root, "cat-file", "--filters", blob)
    try:
        return whole.startswith(read_plain(file, limit=len(whole)))
    except OSError:  # a link, say, or more than a checkout writes
        return False

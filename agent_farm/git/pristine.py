"""Whether a worktree holds anything but what its commit put there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from agent_farm.git.command import paths_of, run_git, run_git_bytes
from agent_farm.git.repository import Repository


def own_content(repository: Repository, path: Path, commit: str) -> list[str]:
    """Paths of files that a checkout of `commit` does not explain, ignored ones included.

    Files that are missing, or end early, are explained: a checkout that was killed leaves such.
    """
    with tempfile.TemporaryDirectory(prefix="af-index-") as directory:
        here = (f"--git-dir={repository.common_dir}", f"--work-tree={path}", "-c", "core.bare=false")
        index = {"GIT_INDEX_FILE": os.path.join(directory, "index")}
        run_git(path, *here, "read-tree", commit, env=index)
        others = paths_of(run_git(path, *here, "ls-files", "-z", "--others", env=index))
        changed = paths_of(
            run_git(path, *here, "diff-files", "-z", "--name-only", "--diff-filter=MT", env=index)
        )
    beyond = [name for name in others if name != ".git" and not name.startswith(".git/")]
    return beyond + [name for name in changed if not _ends_early(repository, path / name, f"{commit}:{name}")]


def _ends_early(repository: Repository, file: Path, blob: str) -> bool:
    if file.is_symlink() or not file.is_file():
        return False
    content = file.read_bytes()
    # as a checkout writes it: with line endings and filters of this repository
    return run_git_bytes(repository.root, "cat-file", "--filters", blob).startswith(content)

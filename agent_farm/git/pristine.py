"""Whether a worktree holds anything but what its commit put there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from agent_farm.disk import read_plain
from agent_farm.git.builder_tree import BuilderTree
from agent_farm.git.command import paths_of, run_git_bytes
from agent_farm.git.repository import Repository


def own_content(repository: Repository, path: Path, commit: str) -> list[str]:
    """Paths of files that a checkout of `commit` does not explain, ignored ones included.

    Files that are missing, or end early, are explained: a checkout that was killed leaves such.
    """
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


def _ends_early(repository: Repository, file: Path, blob: str) -> bool:
    # as a checkout writes it: with line endings and filters of this repository
    whole = run_git_bytes(repository.root, "cat-file", "--filters", blob)
    try:
        return whole.startswith(read_plain(file, limit=len(whole)))
    except OSError:  # a link, say, or more than a checkout writes
        return False

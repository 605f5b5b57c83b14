"""Reading objects through GitPython, where speed is no matter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_farm.git.git_process import GitError

if TYPE_CHECKING:
    from git import Repo


@contextmanager
def open_repo(root: Path, common_dir: Path) -> Iterator[Repo]:
    """The repository for as long as the block lasts, whatever GIT_* variables were inherited."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # it asks git's version when it is imported
    from git import Repo  # 80 ms that only rare commands have to pay

    with Repo(root, expand_vars=False) as repo:  # a `$` in a path is a character
        if os.path.realpath(repo.common_dir) != os.path.realpath(common_dir):
            raise GitError(
                f"The environment names another repository than {root}", hint="unset GIT_COMMON_DIR"
            )
        repo.git.update_environment(
            GIT_DIR=os.fspath(repo.git_dir),
            GIT_COMMON_DIR=os.fspath(common_dir),
            GIT_WORK_TREE=os.fspath(root),
            GIT_OBJECT_DIRECTORY=os.fspath(common_dir / "objects"),
        )
        yield repo

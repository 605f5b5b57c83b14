"""What lies in a worktree as a commit that no ref names: uncommitted and untracked files included."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from agent_farm.git.checkout import BuilderTree
from agent_farm.git.git_process import GitError
from agent_farm.git.merge_trees import loose_commit
from agent_farm.git.repository import Repository


def snapshot(repository: Repository, tree: BuilderTree) -> str:
    """HEAD itself where nothing has changed. Index and files stay as they are; ignored files are left out."""
    head = tree.head().commit
    with tempfile.TemporaryDirectory(prefix="af-snapshot-") as scratch:
        index = Path(scratch, "index")
        try:
            shutil.copy2(tree.git_dir / "index", index)
        except OSError as error:
            raise GitError(f"The index of {tree.path} cannot be read", why=str(error)) from error
        env = {"GIT_INDEX_FILE": str(index)}
        tree.run("-c", "core.splitIndex=false", "add", "--all", "--ignore-errors", ok=(0, 1), env=env)
        whole = tree.run("write-tree", env=env).strip()
    if whole == tree.run("rev-parse", f"{head}^{{tree}}").strip():
        return head
    return loose_commit(repository, whole, head)

"""Trees and commits that nobody committed: the files of a worktree, and a tree with some files replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_farm.git.checkout import BuilderTree
from agent_farm.git.entries import Entry
from agent_farm.git.git_process import GitError, run_git
from agent_farm.git.merge_trees import loose_commit
from agent_farm.git.repository import Repository

_GONE = Entry("0", "0" * 40)


@contextmanager
def copied_index(tree: BuilderTree) -> Iterator[dict[str, str]]:
    """What has git change a copy of the worktree's index, with the times by which it knows its files."""
    import shutil
    import tempfile  # 5 ms, both: most questions about a worktree need no copy of its index

    with tempfile.TemporaryDirectory(prefix="af-index-") as scratch:
        index = Path(scratch, "index")
        try:
            shutil.copy2(tree.index, index)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise GitError(f"The index of {tree.path} cannot be read", why=str(error)) from error
        yield {"GIT_INDEX_FILE": str(index)}


def snapshot(repository: Repository, tree: BuilderTree) -> str:
    """HEAD itself where nothing has changed. Index and files stay as they are; ignored files are left out."""
    head = tree.head().commit
    with copied_index(tree) as env:
        tree.run("-c", "core.splitIndex=false", "add", "--all", "--ignore-errors", ok=(0, 1), env=env)
        whole = tree.run("write-tree", env=env).strip()
    if whole == tree.run("rev-parse", f"{head}^{{tree}}").strip():
        return head
    return loose_commit(repository, whole, head)


def overlaid_tree(repository: Repository, tree: str, files: Mapping[str, Entry | None]) -> str:
    """`tree` with each of `files` as given; None takes it away."""
    import tempfile

    ordered = sorted(files.items(), key=lambda item: item[1] is not None)  # room is made first
    lines = "".join(f"{mode} {blob}\t{path}\0" for path, entry in ordered for mode, blob in [entry or _GONE])
    with tempfile.TemporaryDirectory(prefix="af-overlay-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        run_git(repository.root, "-c", "core.splitIndex=false", "read-tree", tree, env=env)
        run_git(repository.root, "update-index", "-z", "--index-info", input=lines, env=env)
        return run_git(repository.root, "write-tree", env=env).strip()

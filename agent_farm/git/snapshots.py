"""Makes trees and commits of things nobody committed: a worktree's files, or a tree with files replaced."""

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
    """An environment in which git changes a copy of the worktree's index; the copy keeps the files' times."""
    import shutil
    import tempfile  # both take 5 ms, and most questions about a worktree need no copied index

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
    """A commit of the worktree's files, without ignored ones; HEAD itself if nothing has changed."""
    head = tree.head().commit
    with copied_index(tree) as env:
        tree.run("-c", "core.splitIndex=false", "add", "--all", "--ignore-errors", ok=(0, 1), env=env)
        whole = tree.run("write-tree", env=env).strip()
    if whole == tree.run("rev-parse", f"{head}^{{tree}}").strip():
        return head
    return loose_commit(repository, whole, head)


def overlaid_tree(repository: Repository, tree: str, files: Mapping[str, Entry | None]) -> str:
    """`tree` with each of `files` as given; None removes it."""
    import tempfile

    ordered = sorted(files.items(), key=lambda item: item[1] is not None)  # removals come first, to make room
    lines = "".join(f"{mode} {blob}\t{path}\0" for path, entry in ordered for mode, blob in [entry or _GONE])
    with tempfile.TemporaryDirectory(prefix="af-overlay-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        run_git(repository.root, "-c", "core.splitIndex=false", "read-tree", tree, env=env)
        run_git(repository.root, "update-index", "-z", "--index-info", input=lines, env=env)
        return run_git(repository.root, "write-tree", env=env).strip()

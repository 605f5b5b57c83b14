"""Copies a checkout's uncommitted changes (index and files) to a fresh worktree at the same commit."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import cannot_write
from agent_farm.errors import AgentFarmError
from agent_farm.git.changes import tree_state
from agent_farm.git.checkout import BuilderTree, Checkout
from agent_farm.git.entries import kind_on_disk, remove_file
from agent_farm.git.git_process import paths_of

# Keeps the copied index in one file, without the state of a file monitor that watches another directory.
_PLAIN = ("-c", "core.splitIndex=false", "-c", "core.fsmonitor=false")


def carry_changes(source: Checkout, tree: BuilderTree, *, sparse: bool = False) -> None:
    """Make `git status` name the same files in `tree` as at `source`, which is not touched.

    Ignored files, nested repositories and submodules' own changes stay behind.
    """
    state = tree_state(source, each_file=True)
    if state.head != tree.head().commit:
        raise AgentFarmError(f"{source.path} got a new commit while its changes were being copied")
    try:
        _carry_index(source, tree)
        if sparse:
            tree.run("sparse-checkout", "reapply")
        paths = [path for path in (*state.dirty, *state.untracked) if not path.endswith("/")]
        for path in paths:
            if kind_on_disk(tree, path) not in ("directory", "blocked"):  # inside a submodule; behind a link
                remove_file(tree.path, path)
        for path in paths:
            _copy(source.path, tree.path, path)
    except OSError as error:
        raise cannot_write(tree.path, error) from error
    _refresh(tree, set(paths))


def _refresh(tree: BuilderTree, carried: set[str]) -> None:
    """Bring the new files' times and sizes into the index.

    If line-ending settings or filters changed since `source` was checked out, an unchanged file has
    another size here, and git takes that for a change. Without the old size, git compares the content.
    """
    tree.run("update-index", "-q", "--refresh", ok=(0, 1))
    names = paths_of(tree.run("diff-files", "-z", "--name-only"))
    if odd := set(names) - carried:
        staged = paths_of(tree.run("ls-files", "--stage", "-z"))
        lines = "".join(f"{line}\0" for line in staged if line.partition("\t")[2] in odd)
        tree.run("update-index", "-z", "--index-info", input=lines)
        tree.run("update-index", "-q", "--refresh", ok=(0, 1))


def _carry_index(source: Checkout, tree: BuilderTree) -> None:
    copy = tree.git_dir / "agent-farm-carried"
    shutil.copy2(source.index, copy)  # keeps its time, which git compares with those of the files
    source.run(*_PLAIN, "update-index", "--force-write-index", env={"GIT_INDEX_FILE": str(copy)})
    os.replace(copy, tree.index)


def _copy(source: Path, root: Path, path: str) -> None:
    """Copy a file or a link, unless its directory is reached through a link."""
    file, target = source / path, root / path
    place = os.path.join(os.path.realpath(source), os.path.dirname(path))
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = file.lstat().st_mode
        if os.path.realpath(file.parent) == place.rstrip("/") and (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target, follow_symlinks=False)

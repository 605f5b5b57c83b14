"""Limits a linked worktree to some directories: a sparse checkout in cone mode.

git keeps such settings per worktree with `extensions.worktreeConfig`, which changes the whole repository:
go-git and older libgit2 can no longer open it. A conditional include has the same effect; they ignore it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence

from agent_farm.disk import make_directory, replace_file
from agent_farm.git.checkout import BuilderTree
from agent_farm.git.entries import quoted
from agent_farm.git.git_process import ask_git, raise_git_error, run_git
from agent_farm.git.registrations import INCLUDED, SPARSE_SECTION
from agent_farm.git.repository import Repository

_ON = "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n"
_NOTHING = "/*\n!/*/\n"  # except files at the top
_TRIES, _PAUSE = 100, 0.02


def narrow(
    repository: Repository, tree: BuilderTree, directories: Sequence[str], fds: Sequence[int] = ()
) -> None:
    """Limit its first checkout to these directories. The caller holds the lock of the worktree list."""
    forget_gone(repository)
    included = repository.common_dir / INCLUDED
    if not included.is_file():
        replace_file(included, _ON, mode=0o644)
    _configure(repository, _section(tree.git_dir.name) + ".path", INCLUDED, fds=fds)
    copied = tree.git_dir / "config.worktree"  # copied by git from a main checkout that is sparse itself
    if copied.exists():
        for name in ("core.sparseCheckout", "core.sparseCheckoutCone"):
            run_git(repository.root, "config", "--file", copied, "--unset-all", name, ok=(0, 5))
    make_directory(tree.git_dir / "info", mode=0o755)
    replace_file(tree.git_dir / "info/sparse-checkout", _NOTHING, mode=0o644)
    widen(tree, directories, fds=fds)


def widen(tree: BuilderTree, directories: Sequence[str], *, fds: Sequence[int] = ()) -> None:
    """Add these directories; if the worktree has its files already, theirs are written."""
    names = "".join(map(quoted, directories))
    tree.run("sparse-checkout", "add", "--stdin", input=names, pass_fds=fds)


def forget_gone(repository: Repository) -> bool:
    """Remove the configuration of worktrees that are gone; returns whether others are left."""
    if not (repository.common_dir / INCLUDED).exists():
        return False
    found = re.findall(SPARSE_SECTION, (repository.common_dir / "config").read_bytes())
    names = {os.fsdecode(name) for name in found}
    gone = {name for name in names if not (repository.common_dir / "worktrees" / name).is_dir()}
    for name in gone:
        _configure(repository, "--remove-section", _section(name))
    return names > gone


def leave_sparse(repository: Repository) -> None:
    """Remove the included file, unless a worktree still needs it."""
    if not forget_gone(repository):
        (repository.common_dir / INCLUDED).unlink(missing_ok=True)


def _section(name: str) -> str:
    return f"includeIf.gitdir:./worktrees/{name}"


def _configure(repository: Repository, *words: str, fds: Sequence[int] = ()) -> None:
    """Retries, because git does not wait for another git that writes the same file."""
    for _ in range(_TRIES):
        status, _, error = ask_git(repository.root, "config", "--local", *words, pass_fds=fds)
        if b"could not lock" not in error:
            break
        time.sleep(_PAUSE)
    if status:
        raise_git_error(("config", *words), status, error)

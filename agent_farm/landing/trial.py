"""A throw-away worktree, clean and detached, in which work is checked before it lands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import file_lock, make_directory
from agent_farm.errors import LockTaken
from agent_farm.farm.deletion import delete
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import BuilderTree, linked_tree
from agent_farm.git.git_process import run_git
from agent_farm.git.worktree_removal import drop_registration

PLACES = 16  # how many checks can run at the same time


class Trial(Struct):
    """Created on first use. The user of a trial holds the lock of its name, and calls `close`."""

    farm: Farm
    path: Path
    _tree: BuilderTree | None = None

    def show(self, head: str, tree: str) -> BuilderTree:
        """Make HEAD `head`, index and files `tree`, and remove everything else."""
        if self._tree is None:
            self._tree = self._made(head)
        else:
            self._tree.run("clean", "-ffdxq")
        self._tree.run("update-ref", "--no-deref", "HEAD", head)
        self._tree.run("read-tree", "--reset", "-u", tree)
        return self._tree

    def close(self) -> None:
        if self._tree is not None:
            self._tree = None
            remove_trial(self.farm, self.path)

    def _made(self, head: str) -> BuilderTree:
        remove_trial(self.farm, self.path)
        make_directory(self.path.parent)
        with file_lock(self.farm.paths.worktree_lock, inherit=True) as lock:
            arguments = (
                "worktree",
                "add",
                "--force",
                "--quiet",
                "--detach",
                "--no-checkout",
                "--",
                self.path,
                head,
            )
            run_git(self.farm.root, *arguments, pass_fds=[lock])
        tree = linked_tree(self.farm.repository, self.path)
        # git copies the user's sparse patterns, but checks see the whole tree
        (tree.git_dir / "info/sparse-checkout").unlink(missing_ok=True)
        return tree


@contextmanager
def free_trial(farm: Farm) -> Iterator[tuple[Trial, int]]:
    """A trial for checks, and its lock for children to inherit; each process gets another."""
    with ExitStack() as held:
        path, lock = _free_place(farm, held)
        trial = Trial(farm, path)
        held.callback(trial.close)
        yield trial, lock


def _free_place(farm: Farm, held: ExitStack) -> tuple[Path, int]:
    for number in range(PLACES):
        path = farm.paths.trial(f"check-{number}")
        with suppress(LockTaken):
            return path, held.enter_context(file_lock(trial_lock_path(farm, path), wait=0, inherit=True))
    raise LockTaken(f"{PLACES} checks are running", why="That is the limit.")


def trial_lock_path(farm: Farm, path: Path) -> Path:
    return farm.paths.locks / f"{path.name}.lock"


def remove_trial(farm: Farm, path: Path) -> None:
    """Works for one that a killed landing left, too."""
    if os.path.lexists(path):
        if path.is_symlink():
            path.unlink()
        else:
            delete(str(path))
        drop_registration(farm.repository, path)

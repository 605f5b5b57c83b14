"""Ignored output of the main checkout (`worktree.carry`), for a worktree that nobody has worked in yet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import BuilderTree, main_checkout
from agent_farm.git.git_process import paths_of
from agent_farm.git.ignoring import ignored_among, ignored_files
from agent_farm.pane.copies import copy_files
from agent_farm.pane.launchfile import Copy


def declared_output(farm: Farm, patterns: Sequence[str]) -> tuple[str, ...]:
    """What the main checkout has of it, ignored and untracked; a directory ends in a slash."""
    return tuple(ignored_files(main_checkout(farm.repository), patterns)) if patterns else ()


def fitting_output(tree: BuilderTree, names: Sequence[str]) -> tuple[str, ...]:
    """Those that git ignores and does not track in the worktree either, in directories that exist there.

    With another base, or in a sparse checkout, the others would look like work.
    """
    here = [name for name in names if (tree.path / name).parent.is_dir()]
    if not here:
        return ()
    ignored = ignored_among(tree, here)
    tracked = paths_of(tree.run("--literal-pathspecs", "ls-files", "-z", "--", *here))
    return tuple(
        name for name in here if name in ignored and not any(path.startswith(name) for path in tracked)
    )


def carried_files(farm: Farm, tree: BuilderTree, names: Iterable[str]) -> list[Copy]:
    return [Copy(farm.root / name, tree.path / name, "carry") for name in names]


def bring_output(farm: Farm, tree: BuilderTree, names: Sequence[str]) -> tuple[str, ...]:
    """Carry what fits into a worktree that does not belong to a builder yet."""
    fitting = fitting_output(tree, names)
    for _ in copy_files(carried_files(farm, tree, fitting), tree.path, step=farm.step):
        pass  # the spawn that takes it reports what is left out
    return fitting


def output_bytes(farm: Farm, names: Iterable[str]) -> int:
    return sum(size for name in names for size in _sizes(farm.root / name))


def _sizes(path: Path) -> Iterator[int]:
    yield path.lstat().st_blocks * 512
    for directory, folders, files in os.walk(path):
        for name in [*folders, *files]:
            yield os.lstat(os.path.join(directory, name)).st_blocks * 512

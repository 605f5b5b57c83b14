"""Copies files that git does not bring along: never over a file, never outside the worktree."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_farm.pace import Step
from agent_farm.pane.carried import Carrier, clone
from agent_farm.pane.launchfile import Copy


def copy_files(
    copies: Sequence[Copy],
    worktree: Path,
    *,
    step: Step = lambda what, done, total: None,
    only_missing: bool = False,
) -> Iterator[str]:
    """Yields a line for each that could not be copied. What exists already is left alone.

    Carried output is made equal to its source, unless `only_missing`; `step` is told how far that is.
    """
    carried = [copy for copy in copies if copy.how == "carry" and _is_inside(copy.target, worktree)]
    names = [str(copy.target.relative_to(worktree)) for copy in carried]
    carriers = dict[Path, Carrier]()
    for copy in copies:
        try:
            if not _is_inside(copy.target, worktree):
                yield f"not copied: {copy.target} leads out of the worktree"
            elif not os.path.lexists(copy.source):
                yield f"not copied: {copy.source} is gone"
            elif copy.how == "link":
                _link(copy.source, copy.target)
            elif copy.how == "carry":
                name = copy.target.relative_to(worktree)
                root = copy.source.parents[len(name.parts) - 1]
                if root not in carriers:
                    carriers[root] = Carrier(root, worktree, names, step, only_missing=only_missing)
                yield from carriers[root].carry(str(name))
            else:
                yield from _copy_any(copy.source, copy.target)
        except OSError as error:
            yield f"not copied: {copy.target}: {error.strerror or error}"


def _link(source: Path, target: Path) -> None:
    if not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(source, target)


def _is_inside(target: Path, worktree: Path) -> bool:
    """No directory on the way may be a symlink, which could lead into another checkout."""
    try:
        parts = target.relative_to(worktree).parts
    except ValueError:
        return False
    if not parts or ".." in parts:
        return False
    return not any(worktree.joinpath(*parts[:depth]).is_symlink() for depth in range(1, len(parts)))


def _copy_any(source: Path, target: Path) -> Iterator[str]:
    mode = source.lstat().st_mode
    if stat.S_ISDIR(mode):
        yield from _copy_directory(source, target)
        return
    if os.path.lexists(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISREG(mode):
        _copy_file(source, target)
    else:
        yield f"not copied: {source} is neither file, directory nor symlink"


def _copy_directory(source: Path, target: Path) -> Iterator[str]:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        yield f"not copied: {target} already exists and is not a directory"
        return
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(os.listdir(source)):
        try:
            yield from _copy_any(source / entry, target / entry)
        except OSError as error:
            yield f"not copied: {target / entry}: {error.strerror or error}"
    shutil.copystat(source, target)


def _copy_file(source: Path, target: Path) -> None:
    """Under another name first, because an interrupted copy must not look like the file."""
    temporary = target.with_name(f".{target.name[:200]}.{os.getpid()}.af")
    try:
        with open(source, "rb") as original:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as copy:
                try:
                    clone(original.fileno(), copy.fileno())
                except OSError:
                    shutil.copyfileobj(original, copy, 1 << 20)
        shutil.copystat(source, temporary)
        os.link(temporary, target)  # unlike a rename, this fails if the target has appeared in the meantime
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)

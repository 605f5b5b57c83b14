"""Which directories a builder checks out: those requested, and those that its task names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from agent_farm.errors import NotFound, nearest
from agent_farm.farm.farm import Farm
from agent_farm.launch import as_command
from agent_farm.paths import is_below


def require_directories(farm: Farm, commit: str, names: Sequence[str], origin: str) -> tuple[str, ...]:
    """Their paths, each once and none below another; NotFound unless all are directories of the commit."""
    paths = [os.path.normpath(name) for name in names]
    there = farm.repository.directories(commit, [path for path in paths if _can_be_one(path)])
    for path in paths:
        if path not in there:
            raise _no_directory(farm, commit, path, origin)
    return outermost(paths)


def directories_of(farm: Farm, commit: str, paths: Sequence[str]) -> list[str]:
    """The directories of these files; a directory counts as itself."""
    there = farm.repository.directories(commit, paths)
    return [path if path in there else os.path.dirname(path) for path in paths]


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    found = list[str]()
    for path in sorted({f"{path}/" for path in paths if path}):
        if not found or not path.startswith(found[-1]):
            found.append(path)
    return tuple(path.rstrip("/") for path in found)


def _can_be_one(path: str) -> bool:
    """git takes patterns line by line."""
    return is_below(path) and path != "." and "\n" not in path


def _no_directory(farm: Farm, commit: str, path: str, origin: str) -> NotFound:
    above = os.path.dirname(path) if is_below(path) else ""
    beside = farm.repository.list_directory(commit, above)
    known = sorted(farm.repository.directories(commit, [os.path.join(above, name) for name in beside]))
    close = nearest(path, known)
    where = f"in {above}" if above else "at the top"
    return NotFound(
        f"{origin}: {path!r} is not a directory in {commit[:10]}",
        why=f"The nearest name is {close}."
        if close
        else f"There are, {where}: {', '.join(known) or 'none'}.",
        hint=as_command("git", "-C", farm.root, "ls-tree", "-d", "--name-only", commit[:10]),
    )

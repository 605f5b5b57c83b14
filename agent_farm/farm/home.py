"""Where a farm's home is.

`.agent-farm/home.json` names the farm, the path of its main checkout, and the mount namespace in which that
path was seen. A farm that is reached by a second path is used by its first one; found anywhere else, it was
moved or copied (`moved_home.py`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from agent_farm.disk import file_lock
from agent_farm.documents import load, store
from agent_farm.errors import AgentFarmError, DamagedFile, NewerFile
from agent_farm.git.repository import Repository, find_repository
from agent_farm.paths import STATE_NAME, FarmPaths

_NAMESPACE = Path("/proc/self/ns/mnt")
_LOCK_SECONDS = 30.0

_Name = Annotated[str, Meta(pattern=r"\A[a-z0-9-]+\Z")]


class Home(Struct, frozen=True):
    """home.json, which names directories that are read, and sessions that are ended.

    `begun` are places where the farm was found, but to which it has not completely moved yet.
    """

    root: Path
    farm: str
    namespace: str
    former: tuple[_Name, ...] = ()
    begun: tuple[Path, ...] = ()

    def is_settled_in(self, root: Path) -> bool:
        return self.root == root and not self.begun


class FarmToOpen(Struct, frozen=True):
    """The farm to open; `told` are messages about what was done to it."""

    repository: Repository
    paths: FarmPaths
    told: tuple[str, ...] = ()


def settle_home(repository: Repository, *, was_moved: bool = False) -> FarmToOpen:
    """Every command that opens a farm calls this. `was_moved`: a person says so, whatever can be seen."""
    paths = FarmPaths(repository.root, called=repository.name_in(repository.root))
    if not paths.state.is_dir():
        return FarmToOpen(repository, paths)
    home = load_home(paths)
    if home is None:
        return _settle_in(repository, paths)
    if home.is_settled_in(repository.root):
        return FarmToOpen(repository, paths.once_called(*home.former))
    if home.root != repository.root and _is_same(home.root / STATE_NAME, paths.state):
        return settle_home(_seen_from(repository, home.root))
    with file_lock(paths.locks / "home.lock", wait=_LOCK_SECONDS):
        home = load_home(paths) or home
        if home.is_settled_in(repository.root):  # another process was first
            return FarmToOpen(repository, paths.once_called(*home.former))
        from agent_farm.farm.moved_home import change_home

        return change_home(repository, paths, home, was_moved)


def load_home(paths: FarmPaths) -> Home | None:
    """None if it cannot be read: such a file is written again."""
    try:
        return load(paths.home, Home)
    except NewerFile:
        raise
    except (OSError, DamagedFile):
        return None


def _settle_in(repository: Repository, paths: FarmPaths) -> FarmToOpen:
    """The first time, or the first time after an af that did not record this."""
    with suppress(AgentFarmError):  # on a full or read-only disk, the next command does it
        store(paths.home, Home(repository.root, os.urandom(8).hex(), namespace_seen()))
    return FarmToOpen(repository, paths)


def _seen_from(repository: Repository, root: Path) -> Repository:
    """The same directories by the path that git recorded."""
    here = root / os.path.relpath(repository.checkout, repository.root) / repository.prefix
    return find_repository(here if here.is_dir() else root)


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return os.path.samefile(one, other)
    return False


def namespace_seen() -> str:
    """Which mounts this process sees; "" if the system does not say."""
    with suppress(OSError):
        return os.readlink(_NAMESPACE)
    return ""

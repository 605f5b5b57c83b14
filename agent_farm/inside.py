"""Reading a file that comes with a repository: a regular file of bounded size, inside the repository."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agent_farm.errors import AgentFarmError

LARGEST = 4_000_000
# Below the root, but nothing that a repository's own text may bring into a prompt.
_PRIVATE = (".git", ".agent-farm", ".builders")


class NotReadable(AgentFarmError):
    code = "not-readable"


def read_plain(path: Path) -> bytes:
    """The bytes of a regular file; FileNotFoundError where there is none, NotReadable for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        raise
    except NotADirectoryError as error:
        raise FileNotFoundError(path) from error
    except OSError as error:
        raise NotReadable(f"Cannot read {path}", why=os.strerror(error.errno or 0)) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotReadable(f"Cannot read {path}", why="It is not a regular file.")
        if found.st_size > LARGEST:
            raise NotReadable(f"Cannot read {path}", why=f"It has {found.st_size} bytes.")
        return os.read(descriptor, LARGEST)
    finally:
        os.close(descriptor)


def require_inside(root: Path, path: Path) -> Path:
    """`path` with its symbolic links followed; refused when they lead out of the repository at `root`."""
    home = root.resolve()
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:
        raise NotReadable(f"Cannot read {path}", why="Its symbolic links lead nowhere.") from error
    if not target.is_relative_to(home):
        raise _leads(root, path, f"out of the repository, to {target}")
    inner = target.relative_to(home).parts
    if inner and target != home / os.path.relpath(os.path.normpath(path), root):
        if inner[0] in _PRIVATE:
            raise _leads(root, path, f"to {inner[0]}, which belongs to git or af")
        if inner[-1].startswith("."):
            raise _leads(root, path, f"to {os.path.join(*inner)}, a hidden file")
    return target


def _leads(root: Path, path: Path, where: str) -> NotReadable:
    link = next(
        (
            place
            for place in (*reversed(path.parents), path)
            if place.is_relative_to(root) and place.is_symlink()
        ),
        path,
    )
    return NotReadable(
        f"{os.path.relpath(link, root)} is a symbolic link that leads {where}",
        why="What a repository names is only read from the repository.",
        hint=f"git log --stat -- {os.path.relpath(link, root)}",
    )

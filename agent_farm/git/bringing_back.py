"""A worktree whose directory was deleted while git still has its own part: index, HEAD and reflog."""

from __future__ import annotations

import os
from pathlib import Path

from agent_farm.disk import make_directory, read_plain, replace_file
from agent_farm.git.builder_tree import linked_tree
from agent_farm.git.repository import Repository

_LONGEST = 16_384


def registration_of(repository: Repository, path: Path) -> Path | None:
    """git's directory about the worktree at `path`, as far as it is whole."""
    for admin in sorted((repository.common_dir / "worktrees").glob("*")):
        if _line(admin / "gitdir") == os.fspath(path / ".git") and _line(admin / "commondir"):
            return admin
    return None


def bring_back(repository: Repository, path: Path, admin: Path) -> None:
    """The directory again, with all that is in its index; what was staged stays staged."""
    make_directory(path, mode=0o755)
    replace_file(path / ".git", f"gitdir: {admin}\n", mode=0o644)
    linked_tree(repository, path).run("checkout-index", "--all", "--quiet")


def _line(file: Path) -> str:
    try:
        return os.fsdecode(read_plain(file, limit=_LONGEST)).rstrip("\r\n")
    except OSError:
        return ""

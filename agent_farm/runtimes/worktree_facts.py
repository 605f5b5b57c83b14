"""What a runtime needs to know about its checkout: where the git directories are, and who commits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent_farm.disk import read_plain
from agent_farm.runtimes.bounded_run import run_bounded

_SECONDS = 5.0
_LONGEST = 16_384  # bytes of a file that holds one path
_CALLERS = ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_ASK = ("git", "config", "--null", "--get-regexp", r"^(user|author|committer)\.(name|email)$")


def top_of(place: Path) -> Path:
    """The checkout that contains `place`; `place` itself if none does."""
    return next((here for here in (place, *place.parents) if (here / ".git").exists()), place)


def git_directories(worktree: Path) -> tuple[Path, ...]:
    """The worktree's own git directory, then the shared one: a commit writes to both.

    Empty if they do not name each other, because whoever works in the tree can write its `.git`.
    """
    link = worktree / ".git"
    try:
        if link.is_symlink():
            return ()
        if link.is_dir():
            return (link,)
        own = (worktree / _line(link).removeprefix("gitdir:").strip()).resolve()
        common = (own / _line(own / "commondir")).resolve()
        back = (own / _line(own / "gitdir")).resolve()
    except (OSError, ValueError):
        return ()
    belongs = own.parent == common / "worktrees" and back == link.resolve()
    return (own, common) if belongs else ()


def _line(file: Path) -> str:
    return os.fsdecode(read_plain(file, limit=_LONGEST)).strip()


def main_checkout(worktree: Path) -> Path | None:
    """The main checkout of the repository to which a linked worktree belongs; None for any other tree."""
    if (worktree / ".git").is_dir():
        return None
    shared = [place for place in git_directories(worktree) if place.name == ".git"]
    return shared[-1].parent if shared else None


def identity_environment(cwd: Path, env: Mapping[str, str]) -> dict[str, str]:
    """GIT_AUTHOR_* and GIT_COMMITTER_* as git would choose them in `cwd`; values in `env` take precedence.

    Reading the configuration runs nothing of the repository's.
    """
    asked = {name: env[name] for name in ("PATH", "HOME") if name in env}
    asked |= {name: os.environ[name] for name in _CALLERS if name in os.environ}
    try:
        done = run_bounded(_ASK, cwd=cwd, env=asked, seconds=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return {}
    found = dict(entry.partition("\n")[::2] for entry in done.stdout.decode("utf-8", "replace").split("\0"))
    made = {}
    for role in ("author", "committer"):
        for part in ("name", "email"):
            value = found.get(f"{role}.{part}") or found.get(f"user.{part}")
            if value:
                made[f"GIT_{role.upper()}_{part.upper()}"] = value
    return {name: value for name, value in made.items() if name not in env}

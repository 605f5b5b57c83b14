"""What adapters read of a worktree to know which of its settings have to be switched off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def directories_between(top: Path, bottom: Path) -> Iterator[Path]:
    """`bottom` and its parents up to `top`, the way CLIs look for project settings."""
    here = bottom
    while True:
        yield here
        if here == top or here == here.parent or not here.is_relative_to(top):
            return
        here = here.parent


def top_of(place: Path) -> Path:
    """The checkout that `place` is in; `place` itself outside of any."""
    return next((here for here in (place, *place.parents) if (here / ".git").exists()), place)


def git_directories(worktree: Path) -> tuple[Path, ...]:
    """The worktree's own git directory, then the one it shares: a commit writes in both.

    None where they do not name each other: whoever works in the tree can write what its `.git` says.
    """
    link = worktree / ".git"
    try:
        if link.is_symlink():
            return ()
        if link.is_dir():
            return (link,)
        own = (worktree / link.read_text().removeprefix("gitdir:").strip()).resolve()
        common = (own / (own / "commondir").read_text().strip()).resolve()
        back = (own / (own / "gitdir").read_text().strip()).resolve()
    except (OSError, UnicodeDecodeError, ValueError):
        return ()
    belongs = own.parent == common / "worktrees" and back == link.resolve()
    return (own, common) if belongs else ()


def main_checkout(worktree: Path) -> Path | None:
    """The checkout whose repository a linked worktree belongs to; None for any other tree."""
    if (worktree / ".git").is_dir():
        return None
    shared = [place for place in git_directories(worktree) if place.name == ".git"]
    return shared[-1].parent if shared else None

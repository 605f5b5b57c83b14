"""Lock files that a killed git left: every git refuses to work beside them, and none takes them away.

From the file alone nobody can say whose it is: an editor may be open for a commit message. Those of a git
that `af` started are told by the step it was started for: that was written down before, and whoever takes it
up again holds the lock under which it was begun. They alone are removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import read_plain
from agent_farm.git.checkout import Checkout
from agent_farm.paths import WORKTREES_NAME
from agent_farm.processes import GitProcess, gits_at_work

_OF_ONE_CHECKOUT = ("index.lock", "HEAD.lock", "ORIG_HEAD.lock")  # all others are of the whole repository
_LONGEST_PATH = 10_000
_LONGEST = 100  # bytes of a lock that holds a commit's name


def is_git_at_work(checkout: Checkout, lock: Path) -> bool:
    """Whether a git runs that may need this lock of that checkout. Linux only; elsewhere False."""
    if lock.parent == checkout.common_dir and lock.name not in _OF_ONE_CHECKOUT:
        places = [checkout.common_dir, *_checkouts(checkout.common_dir)]
        return any(any(map(one.directory.is_relative_to, places)) for one in gits_at_work())
    return bool(gits_in(checkout))


def gits_in(checkout: Checkout) -> list[GitProcess]:
    builders = checkout.path / WORKTREES_NAME  # theirs have a HEAD and an index of their own
    return [
        one
        for one in gits_at_work()
        if one.directory == checkout.git_dir
        or (one.directory.is_relative_to(checkout.path) and not one.directory.is_relative_to(builders))
    ]


def _checkouts(common_dir: Path) -> Iterator[Path]:
    """Where those that share it are, as git has written it down; the main one is beside it."""
    yield common_dir.parent
    for file in common_dir.glob("worktrees/*/gitdir"):
        with suppress(OSError):
            place = Path(os.fsdecode(read_plain(file, limit=_LONGEST_PATH)).rstrip("\n"))
            if place.is_absolute():
                yield place.parent


def drop_builders_locks(checkout: Checkout, refs: Sequence[str], *, head: bool) -> None:
    """Of a step of a removal or a restore; the caller holds the builder's lock. `head`: it changes HEAD."""
    locks = [checkout.common_dir / f"{ref}.lock" for ref in refs]
    if head:
        locks.append(checkout.git_dir / "HEAD.lock")
    _drop(checkout, locks)


def drop_landings_locks(checkout: Checkout, branch: str, before: str, after: str, *, begun: int) -> None:
    """Of a landing that was cut short; the caller holds the lock of landings, which its git had as well.

    git writes the new commit into the lock of a ref. That of HEAD, which only gets a line in its reflog, is
    empty: it is this landing's when it is younger than the note of it, made at `begun` (in nanoseconds).
    """
    head = checkout.git_dir / "HEAD.lock"
    written = {
        checkout.common_dir / f"refs/heads/{branch}.lock": after,
        checkout.git_dir / "ORIG_HEAD.lock": before,
        head: "",
    }
    locks = [lock for lock, commit in written.items() if _holds(lock, commit)]
    _drop(checkout, [lock for lock in locks if lock != head or lock.lstat().st_mtime_ns >= begun])


def _holds(lock: Path, text: str) -> bool:
    try:
        return read_plain(lock, limit=_LONGEST).decode("ascii", "replace").strip() == text
    except OSError:
        return False


def _drop(checkout: Checkout, locks: Sequence[Path]) -> None:
    for lock in locks:
        if os.path.lexists(lock) and not is_git_at_work(checkout, lock):
            lock.unlink(missing_ok=True)

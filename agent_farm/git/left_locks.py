"""Finds lock files left by a killed git, which make every later git fail, and removes those that are ours.

The file alone does not say whose it is: an editor may be open for a commit message. But a git that `af`
started belongs to a step that was written down before, and whoever resumes that step holds the lock under
which it was begun. Only the locks of such gits are removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import read_plain
from agent_farm.git.checkout import Checkout
from agent_farm.paths import WORKTREES_NAME
from agent_farm.processes import GitProcess, gits_at_work

_OF_ONE_CHECKOUT = ("index.lock", "HEAD.lock")
_OF_ALL = ("config.lock", "packed-refs.lock")
_LONGEST_PATH = 10_000
_LONGEST = 100  # bytes of a lock that holds a commit's name


def left_locks(checkout: Checkout) -> Iterator[Path]:
    """Lock files that no running git owns, as far as that can be told (on Linux): those of the checkout and,
    if it is the main one, of refs and configuration, which all checkouts share."""
    own = [checkout.git_dir / name for name in _OF_ONE_CHECKOUT]
    if (seen := _seen(own)) and not gits_in(checkout):
        yield from _still_there(seen)
    common = checkout.common_dir
    if checkout.git_dir != common:
        return
    if seen := _seen([*(common / name for name in _OF_ALL), *sorted(common.glob("refs/**/*.lock"))]):
        places = [common, *_checkouts(common)]
        if not any(any(map(one.directory.is_relative_to, places)) for one in gits_at_work()):
            yield from _still_there(seen)


def _seen(locks: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Which files they are, of those that exist."""
    found = {}
    for lock in locks:
        with suppress(OSError):
            status = lock.lstat()
            found[lock] = status.st_ino, status.st_mtime_ns
    return found


def _still_there(seen: Mapping[Path, tuple[int, int]]) -> Iterator[Path]:
    """The same files as before no git was found: one that ended just then has taken its lock away, and
    another may have made one since."""
    now = _seen(seen)
    yield from (lock for lock, which in seen.items() if now.get(lock) == which)


def gits_in(checkout: Checkout) -> list[GitProcess]:
    """The gits that run in the checkout, and may need its locks. Linux only; elsewhere none."""
    builders = checkout.path / WORKTREES_NAME  # builders' worktrees have a HEAD and an index of their own
    return [
        one
        for one in gits_at_work()
        if one.directory == checkout.git_dir
        or (one.directory.is_relative_to(checkout.path) and not one.directory.is_relative_to(builders))
    ]


def _checkouts(common_dir: Path) -> Iterator[Path]:
    """The checkouts that share it, according to git's records; the main one is its parent directory."""
    yield common_dir.parent
    for file in common_dir.glob("worktrees/*/gitdir"):
        with suppress(OSError):
            place = Path(os.fsdecode(read_plain(file, limit=_LONGEST_PATH)).rstrip("\n"))
            if place.is_absolute():
                yield place.parent


def drop_builders_locks(checkout: Checkout, refs: Sequence[str], *, head: bool) -> None:
    """Remove the locks of an interrupted removal or restore; the caller holds the builder's lock.

    `head` says whether the step changes HEAD.
    """
    locks = [checkout.common_dir / f"{ref}.lock" for ref in refs]
    if head:
        locks.append(checkout.git_dir / "HEAD.lock")
    _drop(checkout, locks)


def drop_landings_locks(checkout: Checkout, branch: str, before: str, after: str, *, begun: int) -> None:
    """Remove the locks of an interrupted landing; the caller holds the lock for landings, which its git had,
    too.

    git writes the new commit into the lock of a ref. The lock of HEAD, which only gets a reflog entry, is
    empty: it belongs to this landing if it is newer than the landing's note, made at `begun` (in
    nanoseconds).
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
    left = [lock for lock in locks if os.path.lexists(lock)]
    if left and not gits_in(checkout):
        for lock in left:
            lock.unlink(missing_ok=True)

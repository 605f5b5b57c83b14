"""Clones of git sources: ours to make, update and discard, but never with somebody's work in them.

A clone holds one commit, checked out detached from `refs/remotes/origin/lctx`. Links in it are plain files
(`core.symlinks=false`), so that a hostile repository cannot point into the user's home.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_farm.ask.clean_end import ending_cleanly
from agent_farm.ask.targets import GIT_PROTOCOLS, without_password
from agent_farm.disk import cannot_write, file_lock, make_directory
from agent_farm.errors import AgentFarmError, UsageError, WorkWouldBeLost
from agent_farm.git.git_process import GitError, run_git
from agent_farm.git.watched import run_git_watched

if TYPE_CHECKING:
    from agent_farm.ask.sources_manager import Source

Narrate = Callable[[str], None]
_ENV = {"GIT_ALLOW_PROTOCOL": ":".join(GIT_PROTOCOLS)}
_REF = "refs/remotes/origin/lctx"
_PERCENTAGE = re.compile(r" \d+% \(")
_COMMIT = re.compile(r"[0-9a-f]{4,64}")


@contextmanager
def make_clone(source: Source, narrate: Narrate) -> Iterator[None]:
    """Make a complete clone at `source.path`; removed if the body raises, and never left half made."""
    _require_pin(source)
    make_directory(source.path.parent)
    with ending_cleanly(), file_lock(_lock_of(source.path)):
        if os.path.lexists(source.path):
            raise AgentFarmError(
                f"{source.path} is in the way",
                why="it belongs to no source",
                hint=f"mv {source.path} {source.path}.old",
            )
        _discard_leftovers(source.path)
        fresh = source.path.with_name(f".{source.path.name}.{uuid.uuid4().hex}.new")
        try:
            _fill(fresh, source, narrate)
            os.rename(fresh, source.path)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        try:
            yield
        except BaseException:
            shutil.rmtree(source.path, ignore_errors=True)
            raise


def update_clone(source: Source, narrate: Narrate) -> None:
    """Fetch and check out what the pin means now; refused if somebody has worked in the clone."""
    _require_pin(source)
    with ending_cleanly(), file_lock(_lock_of(source.path)):
        if work := find_work(source.path):
            raise WorkWouldBeLost(
                f"The clone of {source.name} holds changes of its own",
                why=f"in {source.path}",
                hint=f"git -C {source.path} status",
                evidence=work[:10],
            )
        if _is_at(source.path, source.commit):
            narrate(f"{source.name}: stays at {source.commit}")
            return
        run_git(source.path, "remote", "set-url", "origin", source.url or "", env=_ENV)
        _fetch_and_check_out(source.path, source, narrate)


def discard_clone(source: Source) -> Path | None:
    """Remove the clone; one that holds work is kept under another name, which is returned."""
    path = source.path
    if path.is_symlink():
        path.unlink()  # somebody put a link there: what it points to is theirs
        return None
    if not path.exists():
        return None
    with file_lock(_lock_of(path)):
        try:
            work = find_work(path)
        except AgentFarmError:
            work = ["git cannot read it"]
        if work:
            kept = path.with_name(f"{path.name}.kept-{int(time.time())}")
            os.rename(path, kept)
            return kept
        doomed = path.with_name(f".{path.name}.{uuid.uuid4().hex}.old")
        os.rename(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)
    return None


def find_work(clone: Path) -> list[str]:
    """Changed and untracked files, and commits that no remote ref holds."""
    if not (clone / ".git").is_dir():
        return [f"{clone} is not the clone it was"]
    dirty = run_git(clone, "status", "--porcelain", "--untracked-files=all").splitlines()
    own = run_git(clone, "log", "--format=%h %s", "HEAD", "--branches", "--not", "--remotes").splitlines()
    stashed = run_git(clone, "stash", "list").splitlines()
    return [*dirty, *own, *stashed]


def _fill(fresh: Path, source: Source, narrate: Narrate) -> None:
    try:
        fresh.mkdir(mode=0o700)
    except OSError as error:
        raise cannot_write(fresh, error) from error
    run_git(fresh, "-c", "init.templateDir=", "init", "-q", "-b", "lctx")
    run_git(fresh, "config", "core.symlinks", "false")
    run_git(fresh, "config", "core.hooksPath", os.devnull)
    run_git(fresh, "remote", "add", "origin", source.url or "", env=_ENV)
    _fetch_and_check_out(fresh, source, narrate)


def _is_at(clone: Path, commit: str | None) -> bool:
    return commit is not None and run_git(clone, "rev-parse", "HEAD").startswith(commit)


def _fetch_and_check_out(clone: Path, source: Source, narrate: Narrate) -> None:
    narrate(f"{source.name}: fetching {without_password(source.url or '')}")
    commit = _fetch(clone, source, narrate)
    run_git(clone, "checkout", "-q", "--force", "--detach", commit)
    narrate(f"{source.name}: at {run_git(clone, 'log', '-1', '--format=%h %s').strip()}")


def _fetch(clone: Path, source: Source, narrate: Narrate) -> str:
    """Returns the commit to check out, fetched with as little history as the remote allows."""
    if source.commit is None:
        _fetch_ref(clone, source.branch or "HEAD", narrate, "--depth=1")
        return _REF
    if len(source.commit) >= 40:
        try:
            _fetch_ref(clone, source.commit, narrate, "--depth=1")
            return source.commit
        except GitError:
            narrate(f"{source.name}: the remote does not serve single commits, fetching all of them")
    _fetch_ref(clone, "refs/heads/*", narrate, into="refs/remotes/origin/*")
    try:
        return run_git(clone, "rev-parse", "--verify", "-q", f"{source.commit}^{{commit}}").strip()
    except GitError as error:
        raise GitError(
            f"{without_password(source.url or '')} has no commit {source.commit}",
            hint=f"af sources show {source.name}",
        ) from error


def _fetch_ref(clone: Path, ref: str, narrate: Narrate, *options: str, into: str = _REF) -> None:
    words = ("fetch", "--progress", "--no-tags", "--no-recurse-submodules", "--force", *options)
    try:
        run_git_watched(clone, *words, "--", "origin", f"+{ref}:{into}", show=_paced(narrate), env=_ENV)
    except GitError as error:
        url = without_password(run_git(clone, "config", "remote.origin.url").strip())
        raise GitError(
            f"git cannot fetch {ref} from {url}",
            why=error.why,
            hint=error.hint,
            status=error.status,
            stderr=error.stderr,
        ) from error


def _paced(narrate: Narrate) -> Narrate:
    """Passes on percentages at most once a second: git prints every single one."""
    shown = time.monotonic()

    def show(line: str) -> None:
        nonlocal shown
        if _PERCENTAGE.search(line):
            if time.monotonic() - shown < 1.0:
                return
            shown = time.monotonic()
        narrate(line)

    return show


def _require_pin(source: Source) -> None:
    if source.branch and source.commit:
        raise UsageError("A source is pinned to a branch or to a commit, not to both")
    if source.commit and not _COMMIT.fullmatch(source.commit):
        raise UsageError(f"{source.commit} is not a commit", why="give 4 to 64 hexadecimal digits")
    if source.branch and not _is_branch_name(source.branch):
        raise UsageError(f"{source.branch} cannot be a branch", why="see git check-ref-format")


def _is_branch_name(name: str) -> bool:
    if name.startswith(("-", "+", "^")) or not name.isprintable():
        return False
    try:
        run_git(Path("/"), "check-ref-format", f"refs/heads/{name}")
    except GitError:
        return False
    return True


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _discard_leftovers(path: Path) -> None:
    """Removes what a killed clone left; the caller's lock proves that nobody else is making this clone."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}\.(?:new|old)")
    for leftover in path.parent.iterdir():
        if ours.fullmatch(leftover.name) and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)

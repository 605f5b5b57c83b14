"""Which files a session made: those that differ from the commit where it began, and did not then."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from agent_farm.paths import STATE_NAME, WORKTREES_NAME
from agent_farm.runtimes.bounded_run import run_bounded

# Keeps files in the tree from naming programs to run here, and a git hook's variables from redirecting git.
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_CONFIGURATION = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")


def commit_of(place: Path) -> str | None:
    """The commit that is checked out (the empty tree before the first one); None outside a repository."""
    try:
        top = _git(place, "rev-parse", "--show-toplevel")
    except OSError:
        return None
    try:
        return _git(Path(top), "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except OSError:
        return _git(Path(top), "hash-object", "-t", "tree", "--stdin")


def differing_files(place: Path, commit: str, apart_from: Iterable[Path] = ()) -> list[str]:
    """Paths from the top of the checkout, without the farm's own files."""
    top = Path(_git(place, "rev-parse", "--show-toplevel"))
    diff = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
    changed = _git(top, *diff, "--ignore-submodules=dirty", "-z", commit, "--")
    unknown = _git(top, "ls-files", "--others", "--exclude-standard", "-z")
    others = {os.path.realpath(path) for path in apart_from}
    return sorted(
        name
        for name in {*changed.split("\0"), *unknown.split("\0")}
        if os.path.lexists(top / name)
        and name.split("/", 1)[0] not in ("", STATE_NAME, WORKTREES_NAME)
        and os.path.realpath(top / name) not in others
    )


def _git(place: Path, *words: str) -> str:
    """OSError with git's message if it fails."""
    env = {k: value for k, value in os.environ.items() if not k.startswith("GIT_") or k in _CONFIGURATION}
    try:
        # an agent's own git must not run into a lock of ours
        done = run_bounded(
            ["git", *_NO_PROGRAMS, *words], cwd=place, env={**env, "GIT_OPTIONAL_LOCKS": "0"}, seconds=60
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"git {words[0]}: {error}") from error
    if done.returncode:
        raise OSError(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()}")
    return os.fsdecode(done.stdout).removesuffix("\n")

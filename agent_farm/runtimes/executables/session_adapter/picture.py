"""What a working tree held when a turn began, so that its end can tell what the turn made."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_farm.paths import STATE_NAME, WORKTREES_NAME

_SECONDS = 60
_HASHED_BYTES = 1 << 26  # of what is larger, size and time tell
# Set in a git hook, they would answer for another tree.
_ELSEWHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
# What lies in the tree names no program that runs here.
_NO_MONITOR = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


class NoPicture(Exception):
    """What git said when it was asked."""


@dataclass(frozen=True)
class Picture:
    """`base` is the commit, `held` what differed from it then: content by path, relative to `top`."""

    top: Path
    base: str
    held: Mapping[str, str | None]

    def made_since(self, apart_from: Iterable[Path]) -> list[str]:
        """The files there are whose content is not what it was, committed or not, as paths from `top`."""
        names = sorted({*_differing(self.top, self.base), *self.held})
        others = {os.path.realpath(path) for path in apart_from}
        made = [name for name in names if _content(self.top / name) not in (None, self.held.get(name))]
        return [
            name for name in made if not _is_farms(name) and os.path.realpath(self.top / name) not in others
        ]


def take_picture(place: Path) -> Picture | None:
    """Of the tree that `place` is in; None outside of any."""
    try:
        top = Path(os.fsdecode(_git(place, "rev-parse", "--show-toplevel").removesuffix(b"\n")))
    except NoPicture:
        return None
    try:
        base = _git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except NoPicture:  # nothing is committed yet
        base = _git(top, "hash-object", "-t", "tree", "--stdin")
    commit = base.decode().strip()
    return Picture(top, commit, {name: _content(top / name) for name in _differing(top, commit)})


def _differing(top: Path, base: str) -> list[str]:
    """What is not as in `base`, and what git does not know and does not ignore."""
    changed = _git(top, "diff", "--name-only", "--no-renames", *_NO_PROGRAMS, "-z", base, "--")
    unknown = _git(top, "ls-files", "--others", "--exclude-standard", "-z")
    return [os.fsdecode(name) for name in dict.fromkeys((changed + unknown).split(b"\0")) if name]


def _content(path: Path) -> str | None:
    """The same word for the same content; None where there is none."""
    try:
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return f"link {os.readlink(path)}"
        if not stat.S_ISREG(facts.st_mode):
            return f"kind {stat.S_IFMT(facts.st_mode)}"
        if facts.st_size > _HASHED_BYTES:
            return f"large {facts.st_size} {facts.st_mtime_ns}"
        with open(path, "rb") as file:
            return f"{facts.st_mode & 0o100} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"unreadable {error.errno}"


def _is_farms(name: str) -> bool:
    return name.split("/", 1)[0] in (STATE_NAME, WORKTREES_NAME)


def _git(place: Path, *words: str) -> bytes:
    env = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        done = subprocess.run(
            ["git", *_NO_MONITOR, *words],
            cwd=place,
            env={**env, "GIT_OPTIONAL_LOCKS": "0"},  # an agent's own git must not find a lock of ours
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPicture(f"git {words[0]}: {error}") from error
    if done.returncode:
        raise NoPicture(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout

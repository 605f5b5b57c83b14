"""Finds the repository that a directory is in.

In an ordinary repository the files tell, so that whatever needs no git works even while git hangs.
Otherwise git is asked one question, and the lack of an answer is explained.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from agent_farm.disk import read_plain
from agent_farm.errors import AgentFarmError
from agent_farm.git.git_process import GitError, ask_git, paths_of, run_git
from agent_farm.git.home_worktree import home_worktree
from agent_farm.git.registrations import SPARSE_SECTION, linked_git_dir
from agent_farm.launch import as_command
from agent_farm.paths import WORKTREES_NAME

# rev-parse echoes options it does not know. This one separates answers, so that paths may hold line breaks.
_MARK = "--agent-farm-next-answer"
_SECONDS = 60.0
_LONGEST = 1 << 20  # bytes of a file that others may have written
_UNUSUAL = re.compile(rb"(?i)worktree|include|objectformat|refstorage|\bbare\b(?!\s*=\s*false\b)")


class Location(Struct, frozen=True):
    """`git_dir` belongs to `root`, which in a bare repository is a linked worktree."""

    root: Path
    common_dir: Path
    checkout: Path
    prefix: str
    git_dir: Path


def locate(cwd: Path) -> Location:
    """The repository of `cwd`; AgentFarmError with the next command if a farm cannot be there."""
    place = _plain_place(cwd) or _asked_place(cwd)
    _require_own_farm(place)
    return place


def _require_own_farm(place: Location) -> None:
    """Refuse another repository named by a builder's `.git`, which whoever works there may replace."""
    builders = place.checkout.parent
    if builders.name != WORKTREES_NAME or not os.path.lexists(builders.parent / ".git"):
        return
    if not _same(place.root, builders.parent):
        raise AgentFarmError(
            f"{place.checkout} is not a worktree of {builders.parent}",
            why=f"Its .git names the repository of {place.root}, which is not the one it lies in.",
            hint=as_command("cd", builders.parent),
        )


def _plain_place(cwd: Path) -> Location | None:
    """What git would answer in an ordinary checkout of the user's own; None if git has to be asked."""
    here = Path(os.path.realpath(cwd))
    try:
        device = here.stat().st_dev
        for top in (here, *here.parents):
            found = top.stat()
            if found.st_dev != device or (top / "HEAD").exists():
                # git stops at a file system boundary, and inside a git directory there is no checkout
                return None
            if os.path.lexists(top / ".git"):
                break
        else:
            return None
        git_dir = _private_directory(top)
        if git_dir is None or not (git_dir / "HEAD").is_file() or found.st_uid != os.geteuid():
            return None
        common = _shared_directory(git_dir)
        if common is None or not _is_ordinary(common):
            return None
    except OSError:
        return None
    prefix = os.path.relpath(here, top)
    return Location(common.parent, common, top, "" if prefix == "." else prefix, common)


def _private_directory(top: Path) -> Path | None:
    """The git directory of a main checkout, or of a linked worktree that its `.git` names."""
    entry = top / ".git"
    if entry.is_dir() and not entry.is_symlink():
        return entry if (entry / "objects").is_dir() and (entry / "refs").is_dir() else None
    target = linked_git_dir(entry)
    return Path(os.path.realpath(target)) if target and target.parent.name == "worktrees" else None


def _shared_directory(git_dir: Path) -> Path | None:
    if git_dir.name == ".git":
        return git_dir
    shared = os.fsdecode(read_plain(git_dir / "commondir", limit=_LONGEST)).rstrip("\r\n")
    common = Path(os.path.realpath(git_dir / shared))
    return common if common.name == ".git" and git_dir.parent == common / "worktrees" else None


def _is_ordinary(common: Path) -> bool:
    """Whether nothing in its configuration changes where the checkout is, or how git reads the repository."""
    if any(path.stat().st_uid != os.geteuid() for path in (common, common.parent)):
        return False
    config = SPARSE_SECTION.sub(b"", read_plain(common / "config", limit=_LONGEST))
    return _UNUSUAL.search(config) is None


def _asked_place(cwd: Path) -> Location:
    status, output, stderr = ask_git(
        cwd,
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        _MARK,
        "--git-dir",
        _MARK,
        "--git-common-dir",
        _MARK,
        "--show-prefix",
        timeout=_SECONDS,
    )
    if status:
        return _without_checkout(cwd, stderr.decode("utf-8", "replace"))
    answers = output.decode("utf-8", "surrogateescape").split(f"\n{_MARK}\n")
    checkout, git_dir, common_dir = (Path(answer) for answer in answers[:3])
    prefix = answers[3].removesuffix("\n").rstrip("/")
    if _same(git_dir, common_dir):
        return Location(checkout, common_dir, checkout, prefix, common_dir)
    settings = _core_settings(common_dir)
    if _is_bare(settings):
        return _in_bare(common_dir, checkout, prefix)
    return Location(_main_checkout(checkout, common_dir, settings), common_dir, checkout, prefix, common_dir)


def _same(one: Path, other: Path) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _in_bare(common_dir: Path, checkout: Path | None = None, prefix: str = "") -> Location:
    home = home_worktree(common_dir)
    root = Path(os.path.realpath(home.tree))
    return Location(root, common_dir, checkout or root, prefix, home.admin)


def _is_bare(settings: Mapping[str, str]) -> bool:
    return "core.worktree" not in settings and settings.get("core.bare") in ("true", "yes", "on", "1", "")


def _main_checkout(checkout: Path, common_dir: Path, settings: Mapping[str, str]) -> Path:
    """The top level of the main checkout, found from a linked worktree."""
    if "core.worktree" in settings:  # a submodule, or a main checkout that was put elsewhere
        return Path(os.path.realpath(common_dir / settings["core.worktree"]))
    if common_dir.name == ".git":
        return common_dir.parent
    for parent in checkout.parents:  # after `git init --separate-git-dir`, this is the only way back
        if (parent / ".git").is_file() and _points_to(parent / ".git", common_dir):
            return parent
    raise AgentFarmError(
        f"The main checkout of {checkout} cannot be found",
        why=f"Its git directory {common_dir} is elsewhere and does not point back to it.",
        hint="run af in the main checkout",
    )


def _core_settings(common_dir: Path) -> dict[str, str]:
    output = run_git(
        common_dir,
        f"--git-dir={common_dir}",
        "config",
        "-z",
        "--get-regexp",
        r"^core\.(bare|worktree)$",
        ok=(0, 1),
    )
    pairs = (item.partition("\n") for item in paths_of(output))
    return {name: value for name, _, value in pairs}


def _points_to(git_file: Path, git_dir: Path) -> bool:
    target = linked_git_dir(git_file)
    return target is not None and _same(target, git_dir)


def _without_checkout(cwd: Path, stderr: str) -> Location:
    """In a bare repository, one of its worktrees; else the error that says why there is no checkout."""
    if "must be run in a work tree" not in stderr:
        _raise_no_place(cwd, stderr)
    question = ("rev-parse", "--path-format=absolute", "--is-bare-repository", "--git-common-dir")
    is_bare, common_dir = run_git(cwd, *question).rstrip("\n").split("\n", 1)
    if is_bare == "true":
        return _in_bare(Path(common_dir))
    raise AgentFarmError(
        f"{cwd} lies inside a git directory", why="It has no checkout of its own.", hint="cd to the checkout"
    )


def _raise_no_place(cwd: Path, stderr: str) -> NoReturn:
    if "not a git repository" in stderr:
        if "(or any" in stderr:
            raise AgentFarmError(
                f"{cwd} is not in a git repository",
                why="cd into your repository, or create one here.",
                hint="git init",
            )
        raise AgentFarmError(  # a `.git` file that names a missing directory, which git's message names
            f"The git directory of {cwd} is gone",
            why=stderr.strip().removeprefix("fatal: "),
            hint="git worktree repair, in the main checkout",
        )
    if "Unable to read current working directory" in stderr or "cannot get current working" in stderr:
        raise AgentFarmError(f"The directory {cwd} was deleted", hint="cd to a directory that exists")
    if "dubious ownership" in stderr:
        command = next((line for line in stderr.splitlines() if "safe.directory" in line), "")
        raise GitError(
            f"git does not trust the repository of {cwd}",
            why="It belongs to another user.",
            hint=command.strip(),
            stderr=stderr,
        )
    raise GitError(
        "git cannot read the repository", why=stderr.strip().removeprefix("fatal: "), stderr=stderr
    )

"""From a directory to its repository: one question to git, and an explanation when there is no answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from agent_farm.disk import read_plain
from agent_farm.errors import AgentFarmError
from agent_farm.git.command import GitError, ask_git, paths_of, run_git

# rev-parse echoes options it does not know. Such a mark keeps paths with line breaks whole.
_MARK = "--agent-farm-next-answer"
_LONGEST = 16_384  # bytes of a `.git` file


@dataclass(frozen=True, slots=True)
class Place:
    root: Path
    common_dir: Path
    checkout: Path
    prefix: str


def locate(cwd: Path) -> Place:
    """Where `cwd` lies; AgentFarmError with the next command when a farm cannot live there."""
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
        _MARK,
        "--show-object-format",
    )
    if status:
        _raise_no_place(cwd, stderr.decode("utf-8", "replace"))
    answers = output.decode("utf-8", "surrogateescape").split(f"\n{_MARK}\n")
    checkout, git_dir, common_dir = (Path(answer) for answer in answers[:3])
    root = checkout if _same(git_dir, common_dir) else _main_checkout(checkout, common_dir)
    if answers[4].strip() != "sha1":
        raise AgentFarmError(
            f"The repository in {checkout} uses SHA-256", why="af works with SHA-1 repositories only."
        )
    return Place(root, common_dir, checkout, answers[3].rstrip("/"))


def _same(one: Path, other: Path) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _main_checkout(checkout: Path, common_dir: Path) -> Path:
    """The main worktree's top level, asked from a linked one."""
    settings = _core_settings(common_dir)
    if "core.worktree" in settings:  # a submodule, or a main checkout that was put elsewhere
        return Path(os.path.realpath(common_dir / settings["core.worktree"]))
    if settings.get("core.bare") in ("true", "yes", "on", "1", ""):
        raise AgentFarmError(
            f"The repository of {checkout} is bare",
            why=f"{common_dir} has linked worktrees but no main checkout, where a farm lives.",
            hint=f"git clone {common_dir} <directory>, then run af there",
        )
    if common_dir.name == ".git":
        return common_dir.parent
    for parent in checkout.parents:  # `git init --separate-git-dir` leaves no way back but this one
        if (parent / ".git").is_file() and _points_to(parent / ".git", common_dir):
            return parent
    raise AgentFarmError(
        f"The main checkout of {checkout} cannot be found",
        why=f"Its git directory {common_dir} lies elsewhere and does not name it.",
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


def linked_git_dir(git_file: Path) -> Path | None:
    """Where a `.git` file points; None when it is no such file."""
    try:
        content = os.fsdecode(read_plain(git_file, limit=_LONGEST))
    except OSError:
        return None
    if not content.startswith("gitdir: "):
        return None
    return git_file.parent / content.removeprefix("gitdir: ").rstrip("\r\n")


def _raise_no_place(cwd: Path, stderr: str) -> NoReturn:
    if "not a git repository" in stderr:
        if "(or any" in stderr:
            raise AgentFarmError(
                f"{cwd} is not in a git repository", why="A farm is a git repository.", hint="git init"
            )
        raise AgentFarmError(  # a `.git` file that points to nothing: git names the missing directory
            f"The git directory of {cwd} is gone",
            why=stderr.strip().removeprefix("fatal: "),
            hint="git worktree repair, in the main checkout",
        )
    if "must be run in a work tree" in stderr:
        _raise_no_work_tree(cwd)
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


def _raise_no_work_tree(cwd: Path) -> NoReturn:
    bare = run_git(cwd, "rev-parse", "--is-bare-repository").strip() == "true"
    if bare:
        raise AgentFarmError(
            f"The repository in {cwd} is bare",
            why="It has no checkout, and builders' worktrees live inside one.",
            hint=f"git clone {cwd} <directory>, then run af there",
        )
    raise AgentFarmError(
        f"{cwd} lies inside a git directory", why="It has no checkout of its own.", hint="cd to the checkout"
    )

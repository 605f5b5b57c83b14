"""What git ignores: af's own directories, and the ignored files that a fresh worktree needs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent_farm.disk import cannot_write, file_lock, replace_file
from agent_farm.git.checkout import BuilderTree, Checkout
from agent_farm.git.git_process import paths_of
from agent_farm.git.home_worktree import claim_home, release_home
from agent_farm.git.repository import Repository
from agent_farm.paths import IGNORED_BY_GIT

_OURS = (".builders/", ".agent-farm/")


def keep_apart(repository: Repository) -> None:
    """Make git ignore af's directories, and keep it from removing them with the worktree they are in."""
    exclude(repository, IGNORED_BY_GIT)
    if repository.git_dir != repository.common_dir:
        claim_home(repository.git_dir)


def leave_to_git(repository: Repository) -> None:
    include_again(repository, IGNORED_BY_GIT)
    if repository.git_dir != repository.common_dir:
        release_home(repository.git_dir)


def exclude(repository: Repository, patterns: Iterable[str]) -> list[str]:
    """Add the lines to the repository's own ignore file, `info/exclude`; returns those that were missing."""
    wanted = list(patterns)
    file = Path(os.path.realpath(repository.common_dir / "info" / "exclude"))
    if not _missing(file, wanted):
        return []
    with file_lock(repository.common_dir / "agent-farm-exclude.lock"):
        added = _missing(file, wanted)
        if added:
            _append(file, added)
        return added


def include_again(repository: Repository, patterns: Iterable[str]) -> None:
    """Remove the lines from the repository's own ignore file."""
    file = Path(os.path.realpath(repository.common_dir / "info" / "exclude"))
    ours = {f"{pattern}\n".encode() for pattern in patterns}
    with file_lock(repository.common_dir / "agent-farm-exclude.lock"):
        if file.is_file():
            lines = file.read_bytes().splitlines(keepends=True)
            left = b"".join(line for line in lines if line not in ours)
            replace_file(file, left, mode=file.stat().st_mode & 0o777)
    (repository.common_dir / "agent-farm-exclude.lock").unlink(missing_ok=True)


def ignored_files(checkout: Checkout, patterns: Sequence[str]) -> list[str]:
    """Ignored, untracked paths that match the gitignore-style `patterns`, relative to `checkout`.

    A directory that matches and is ignored as a whole is one entry, ending in a slash.
    Builders' worktrees and af's own files never match.
    """
    rules = [f"--exclude={pattern}" for pattern in map(_pattern, patterns) if pattern]
    if not rules:
        return []
    matching = _matching(checkout, rules, "--directory")
    ignored = ignored_among(checkout, matching)
    partly = [path for path in matching if path.endswith("/") and path not in ignored]
    if partly:  # a directory that matches, but only some of its files are ignored
        ignored |= ignored_among(checkout, _matching(checkout, rules, "--", *partly))
    return sorted(ignored)


def ignored_entries(tree: BuilderTree) -> list[str]:
    """Everything ignored, directories as one entry, without builders' worktrees and af's own files."""
    output = tree.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    found = list[str]()
    for path in sorted(paths_of(output)):  # a directory sorts before its files, which git may list again
        if not path.startswith(_OURS) and not path.startswith(
            tuple(one for one in found[-1:] if one[-1] == "/")
        ):
            found.append(path)
    return found


def _pattern(line: str) -> str:
    """The pattern in one line of a gitignore-style file; empty for a comment."""
    text = line.rstrip("\r\n")
    if not text.endswith("\\ "):
        text = text.rstrip(" ")
    return "" if text.startswith("#") else text


def _matching(checkout: Checkout, rules: Sequence[str], *more: str) -> list[str]:
    limits = more if "--" in more else (*more, "--")
    exact = ("--literal-pathspecs",)
    output = checkout.run(*exact, "ls-files", "-z", "--others", "--ignored", *rules, *limits)
    return [path for path in paths_of(output) if not path.startswith(_OURS)]


def ignored_among(checkout: Checkout, paths: Sequence[str]) -> set[str]:
    """The paths that are ignored and hold no tracked file."""
    if not paths:
        return set()
    question = "".join(f"{path}\0" for path in paths)
    return set(paths_of(checkout.run("check-ignore", "-z", "--stdin", input=question, ok=(0, 1))))


def _missing(file: Path, wanted: Sequence[str]) -> list[str]:
    try:
        present = file.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        present = []
    except OSError as error:
        raise cannot_write(file, error) from error
    return [line for line in wanted if line not in present]


def _append(file: Path, lines: Sequence[str]) -> None:
    try:
        file.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(file.parent, error) from error
    before = file.read_bytes() if file.exists() else b""
    if before and not before.endswith(b"\n"):
        before += b"\n"
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
    added = b"".join(os.fsencode(line) + b"\n" for line in lines)
    replace_file(file, before + added, mode=mode)

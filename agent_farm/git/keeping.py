"""Moves a worktree away and back, while git keeps it on record all the time.

The directory is renamed; git's own directory about it stays in place, locked, and gets the new path. So
`git gc` keeps what HEAD, index and reflog name, and nothing has to be read, stored or written again.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import read_plain, replace_file
from agent_farm.errors import AgentFarmError, WorkWouldBeLost
from agent_farm.git.checkout import BuilderTree, main_checkout
from agent_farm.git.divergence import reachable
from agent_farm.git.git_process import GitError, ask_git, run_git
from agent_farm.git.merge_trees import loose_commit
from agent_farm.git.registrations import Registration, connect, line_of, registrations
from agent_farm.git.repository import Repository
from agent_farm.launch import as_command

LOCKED = "removed by af: af restore brings it back"

_NOTE = "af prune"
_LONGEST = 16_384
_LONGEST_LOG = 1 << 26
_COMMIT = re.compile(rb"\b[0-9a-f]{40,64}\b")
# Files that name commits git remembers for a worktree, and that may be on no branch any more.
_POINTERS = ("ORIG_HEAD", "REBASE_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "logs/HEAD")


def put_away(
    repository: Repository, path: Path, place: Path, known: Sequence[Registration] | None = None
) -> None:
    """Rename the worktree to `place`; after a crash, the same call does what was left to do.

    `known` is git's record of worktrees, for a caller that puts many away.
    """
    known = list(registrations(repository.common_dir)) if known is None else known
    for one in known:
        if _is_within(one.tree, path) and one.locked is None:
            replace_file(one.admin / "locked", f"{LOCKED}\n", mode=0o644)
    rename(path, place)
    _name_again(repository, path, place, known)


def take_out(repository: Repository, place: Path, path: Path) -> None:
    """Bring it back; works after a crash, and if the repository was moved or copied in the meantime."""
    if os.path.lexists(path) and os.path.lexists(place):  # `place` does not hold what git has on record
        raise AgentFarmError(
            f"The worktree in {place} cannot come back",
            why=f"Something else is at {path}.",
            hint=as_command("ls", "-ld", path),
        )
    if place.is_dir():
        rename(place, path)
    _name_again(repository, place, path, list(registrations(repository.common_dir)))
    unlock(repository, path)


def unlock(repository: Repository, path: Path) -> None:
    """Remove our own lock; anybody else's stays."""
    for one in registrations(repository.common_dir):
        if _is_within(one.tree, path) and one.locked == LOCKED:
            (one.admin / "locked").unlink()


def _name_again(repository: Repository, before: Path, now: Path, known: Sequence[Registration]) -> None:
    """Make git's directories and the moved worktree name each other again, and worktrees inside it, too.

    Both sides are mended: the farm may have been moved or copied while the worktree was away.
    """
    for one in known:
        if _is_within(one.tree, before):
            adopt(repository, one.admin.name, now / one.tree.relative_to(before))
        elif _is_within(one.tree, now):
            adopt(repository, one.admin.name, one.tree)


def admin_of(repository: Repository, name: str, place: Path) -> Path | None:
    """git's directory `name`, if it and the worktree at `place` name each other.

    Only the end of the path is compared: the repository may have been moved or copied since.
    """
    admin = repository.common_dir / "worktrees" / name
    if not name or name != os.path.basename(name) or admin.is_symlink():
        return None
    tail = (*place.parts[-4:], ".git")
    said = Path(line_of(admin / "gitdir"))
    link = Path(line_of(place / ".git").removeprefix("gitdir: "))
    if said.parts[-len(tail) :] != tail or link.parts[-2:] != ("worktrees", name):
        return None
    return admin


def adopt(repository: Repository, name: str, place: Path) -> None:
    """Make the two name each other by their current paths; a `.git` that names something else is kept."""
    admin = repository.common_dir / "worktrees" / name
    link = Path(line_of(place / ".git").removeprefix("gitdir: "))
    if link.parts[-2:] == ("worktrees", name) and not place.is_symlink():
        connect(admin, place)
    elif line_of(admin / "gitdir") != str(place / ".git"):
        replace_file(admin / "gitdir", os.fsencode(place / ".git") + b"\n", mode=0o644)


class LeavingTree(Struct, frozen=True):
    """A worktree that is about to be put away with its branch; its HEAD keeps the commits in `kept` alive."""

    tree: BuilderTree
    branch: str
    kept: Sequence[str]


def lonely_commits(repository: Repository, leaving: Mapping[str, LeavingTree]) -> dict[str, list[str]]:
    """Commits that only the reflog of a worktree or its branch knows, or ORIG_HEAD and its like.

    git would collect them once those are gone or expire. Of a chain of commits, only the newest is named.
    One question for all; a commit that only another leaving worktree holds counts as lonely, too.
    """
    wanted = {id: _remembered(one.tree, one.branch) - set(one.kept) for id, one in leaving.items()}
    wanted = {id: some for id, some in wanted.items() if some}
    if not wanted:
        return {id: [] for id in leaving}
    starts = {name for id, some in wanted.items() for name in (*some, *leaving[id].kept)}
    without = [f"--exclude={one.branch}" for one in leaving.values()]
    others = ("--not", *without, "--branches", "--tags", "--remotes")
    question = "".join(f"{name}\n" for name in sorted(starts))
    words = ("rev-list", "--parents", "--ignore-missing", "--stdin", *others)
    rows = (line.split() for line in run_git(repository.root, *words, input=question).splitlines())
    parents = {row[0]: row[1:] for row in rows}
    found = {}
    for id, one in leaving.items():
        own = set[str]().union(*(reachable(name, parents) for name in wanted.get(id, ())))
        own -= set[str]().union(*(reachable(name, parents) for name in one.kept))
        inner = {parent for commit in own for parent in parents[commit]}
        found[id] = [commit for commit in parents if commit in own - inner]
    return found


def _remembered(tree: BuilderTree, branch: str) -> set[str]:
    places = [tree.git_dir / name for name in _POINTERS]
    found: set[str] = set()
    for place in [*places, branch_log(tree.common_dir, branch)]:
        with suppress(OSError):
            found |= {name.decode() for name in _COMMIT.findall(read_plain(place, limit=_LONGEST_LOG))}
    if any((tree.git_dir / "refs" / name).is_dir() for name in ("worktree", "bisect")):
        refs = tree.run("for-each-ref", "--format=%(objectname)", "refs/worktree", "refs/bisect")
        found |= set(refs.split())
    return {name for name in found if name.strip("0")}


def bundle(repository: Repository, commits: Sequence[str]) -> str:
    """One commit that has all of `commits` as parents, so that a single ref keeps them."""
    message = "Commits that only a removed builder's reflog knew\n"
    return loose_commit(repository, f"{commits[0]}^{{tree}}", *commits, message=message)


def drop_ref(repository: Repository, ref: str) -> None:
    """Delete the ref, if there is one."""
    run_git(repository.root, "update-ref", "-d", ref)


def drop_refs(repository: Repository, refs: Mapping[str, str]) -> list[GitError]:
    """Delete each that still names this commit: all at once, or if git refuses one of them, one by one."""
    if not refs:
        return []
    changes = "".join(f"delete {ref} {commit}\n" for ref, commit in refs.items())
    try:
        run_git(repository.root, "update-ref", "--stdin", input=changes)
    except GitError as error:
        if len(refs) == 1:
            return [error]
        return [problem for one in refs.items() for problem in drop_refs(repository, dict([one]))]
    return []


def drop_all_refs(repository: Repository) -> None:
    names = run_git(repository.root, "for-each-ref", "--format=delete %(refname)", "refs/agent-farm")
    if names:
        run_git(repository.root, "update-ref", "--stdin", input=names)


def branch_log(common_dir: Path, branch: str) -> Path:
    return common_dir / "logs/refs/heads" / branch


def branch_settings(repository: Repository, branch: str) -> list[tuple[str, str]]:
    """The settings that `git push -u` and its like wrote about the branch."""
    with suppress(OSError):  # git will say what is wrong with the file
        if b"branch" not in (repository.common_dir / "config").read_bytes().lower():
            return []
    status, output, _ = ask_git(repository.root, "config", "--local", "--null", "--list")
    pairs = (item.partition("\n") for item in output.decode("utf-8", "surrogateescape").split("\0"))
    own = f"branch.{branch}."
    found = [(key, value) for key, _, value in pairs if key.startswith(own) and "." not in key[len(own) :]]
    return [] if status else found


def let_go(repository: Repository, trees: Sequence[tuple[str, str | None, Sequence[str]]]) -> None:
    """For each worktree, by git's name for it: detach HEAD at the given commit, then make the ref changes.

    One transaction for each worktree, all in one process; can be repeated.
    """
    lines = list[str]()
    for name, head, changes in trees:
        if head is not None:
            lines += ["start", "option no-deref", f"update worktrees/{name}/HEAD {head}", "commit"]
        if changes:
            lines += ["start", *changes, "commit"]
    if lines:
        main_checkout(repository).run(
            "update-ref", "-m", _NOTE, "--stdin", input="".join(f"{line}\n" for line in lines)
        )


def attach(tree: BuilderTree, branch: str) -> None:
    """HEAD names the branch again, and the removal is taken out of its reflog."""
    tree.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    log = tree.git_dir / "logs/HEAD"
    with suppress(OSError):
        lines = read_plain(log, limit=_LONGEST_LOG).splitlines(keepends=True)
        if len(lines) > 1 and _message(lines[-2]) == _NOTE and not _message(lines[-1]):
            replace_file(log, b"".join(lines[:-2]), mode=0o644)


def _message(line: bytes) -> str:
    return line.partition(b"\t")[2].decode("utf-8", "replace").strip()


def bring_back_branch(
    repository: Repository, branch: str, commit: str, log: Path, settings: Sequence[tuple[str, str]]
) -> None:
    """Make the branch again, and its reflog and settings if they are missing; can be repeated.

    A reflog with more than the line written here holds newer entries, and is kept instead of the old one.
    """
    there = branch_settings(repository, branch)
    for key, value in settings:
        if (key, value) not in there:
            run_git(repository.root, "config", "--local", "--add", key, value)
    tip = repository.branch_commit(branch)
    if tip is None:
        run_git(repository.root, "update-ref", "--create-reflog", f"refs/heads/{branch}", commit, "")
    place = branch_log(repository.common_dir, branch)
    if tip in (None, commit) and log.is_file() and _has_just_begun(place):
        replace_file(place, log.read_bytes(), mode=0o644)


def _has_just_begun(log: Path) -> bool:
    try:
        return len(read_plain(log, limit=_LONGEST_LOG).splitlines()) <= 1
    except OSError:  # there is no reflog, or it is too large to read
        return False


def rename(path: Path, target: Path) -> None:
    """Rename a directory even if it is read-only (the system demands write permission); its mode is kept."""
    mode = path.lstat().st_mode
    protected = stat.S_ISDIR(mode) and not mode & stat.S_IWUSR
    try:
        if protected:
            path.chmod(mode | stat.S_IWUSR)
        try:
            os.rename(path, target)
        except BaseException:
            if protected:
                path.chmod(mode)
            raise
        if protected:
            target.chmod(mode)
    except PermissionError as error:
        raise WorkWouldBeLost(
            f"{path} cannot be moved",
            why="It belongs to another user, or the directory it is in does.",
            hint=as_command("ls", "-ld", path, path.parent),
        ) from error
    except OSError as error:
        raise AgentFarmError(f"{path} cannot be moved to {target}", why=error.strerror) from error


def _is_within(tree: Path, place: Path) -> bool:
    return tree == place or str(tree).startswith(f"{place}/")

"""Finds unsaved work in repositories inside a worktree, which no commit of the worktree holds.

git runs whatever a repository's configuration names, and whoever works in the worktree may have written
that. So git is run in a directory of ours, with the repository's references but none of its configuration.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from agent_farm.disk import read_plain
from agent_farm.errors import AgentFarmError
from agent_farm.git.changes import tree_state
from agent_farm.git.checkout import BuilderTree
from agent_farm.git.git_process import paths_of

_GITLINK = (0o160000).to_bytes(4, "big")
_LONGEST = 1 << 28  # bytes of an index or of packed references


def submodules_with_work(tree: BuilderTree) -> dict[str, str]:
    """For each checked-out submodule with work that no remote has, what that work is."""
    if not _may_know_submodules(tree):
        return {}
    lines = paths_of(tree.run("ls-files", "--stage", "-z"))
    paths = dict.fromkeys(line.partition("\t")[2] for line in lines if line.startswith("160000 "))
    here = [path for path in paths if os.path.lexists(tree.path / path / ".git")]
    found = {path: _local_work(tree.path / path) for path in here}
    return {path: reason for path, reason in found.items() if reason is not None}


def _may_know_submodules(tree: BuilderTree) -> bool:
    """Whether any entry of the index may be a submodule; False spares nearly every worktree a process.

    A submodule's entry holds its mode in four bytes. An index that is split, or has whole directories as
    entries, keeps entries elsewhere.
    """
    try:
        content = read_plain(tree.index, limit=_LONGEST)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(mark in content for mark in (_GITLINK, b"link", b"sdir"))


def holds_repository(folder: Path) -> bool:
    """Whether there is a git repository anywhere below, or a directory that cannot be read."""
    unseen = list[OSError]()
    for _, folders, files in os.walk(folder, onerror=unseen.append):
        if ".git" in folders or ".git" in files:
            return True
    return bool(unseen)


def _local_work(submodule: Path) -> str | None:
    """What would be lost with the submodule; None if its remote has everything."""
    with tempfile.TemporaryDirectory(prefix="af-submodule-") as scratch:
        try:
            tree = _stand_in(submodule, Path(scratch))
            if not tree_state(tree).clean:
                return "uncommitted changes"
            words = ("rev-list", "--count", "HEAD", "--branches", "--glob=refs/stas[h]", "--not", "--remotes")
            count = int(tree.run(*words))
            if count:
                commits = "1 commit that is" if count == 1 else f"{count} commits that are"
                return f"{commits} on none of its remote branches"
            inner = submodules_with_work(tree)
        except (AgentFarmError, OSError, ValueError) as error:
            why = (error.why or error.what) if isinstance(error, AgentFarmError) else str(error)
            return f"it cannot be read: {why}"
    return next((f"{path}: {reason}" for path, reason in inner.items()), None)


def _stand_in(submodule: Path, scratch: Path) -> BuilderTree:
    """The submodule's HEAD, index, references and objects, under a configuration of our own."""
    git_dir = submodule / ".git"
    if not git_dir.is_dir() or git_dir.is_symlink():
        link = os.fsdecode(read_plain(git_dir, limit=_LONGEST)).rstrip("\r\n").removeprefix("gitdir: ")
        git_dir = Path(os.path.realpath(submodule / link))
    for name in ("HEAD", "index", "packed-refs"):
        if os.path.lexists(git_dir / name):
            (scratch / name).write_bytes(read_plain(git_dir / name, limit=_LONGEST))
    for directory, _, files in os.walk(git_dir / "refs"):
        place = scratch / os.path.relpath(directory, git_dir)
        place.mkdir(parents=True)
        for name in files:
            (place / name).write_bytes(read_plain(Path(directory) / name, limit=_LONGEST))
    (scratch / "objects/info").mkdir(parents=True)
    (scratch / "objects/info/alternates").write_bytes(os.fsencode(git_dir / "objects") + b"\n")
    (scratch / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    return BuilderTree(submodule, scratch, scratch)

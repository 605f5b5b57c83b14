"""A checkout's uncommitted state as a commit that no ref names, so that another worktree can have it."""

from __future__ import annotations

from pathlib import Path

from agent_farm.errors import DamagedFile
from agent_farm.git.builder_tree import BuilderTree, run_in, run_in_bytes
from agent_farm.git.command import GitError
from agent_farm.git.snapshot import Manifest, take_snapshot

_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "agent-farm"), ("EMAIL", "agent-farm@localhost"))
}


def snapshot_commit(checkout: Path | BuilderTree) -> str:
    """The checkout's state; `restore_state` brings it elsewhere. Neither files nor index are touched."""
    snapshot = take_snapshot(checkout)
    words = ("commit-tree", snapshot.tree, "-p", snapshot.manifest.head)
    return run_in(checkout, *words, input=b"Carried state\n", env=_IDENTITY).strip()


def load_manifest(checkout: Path | BuilderTree, commit: str) -> Manifest:
    try:
        data = run_in_bytes(checkout, "cat-file", "blob", f"{commit}:manifest.json")
    except GitError as error:
        raise DamagedFile(f"{commit} is no carried state", hint=f"git show {commit}") from error
    return Manifest.from_json(data, commit)

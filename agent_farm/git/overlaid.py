"""A tree with some of its files exchanged, made in the object store."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent_farm.git.entries import Entry
from agent_farm.git.git_process import run_git
from agent_farm.git.repository import Repository

_GONE = Entry("0", "0" * 40)


def overlaid_tree(repository: Repository, tree: str, files: Mapping[str, Entry | None]) -> str:
    """`tree` with each of `files` as given; None takes it away."""
    ordered = sorted(files.items(), key=lambda item: item[1] is not None)  # room is made first
    lines = "".join(f"{mode} {blob}\t{path}\0" for path, entry in ordered for mode, blob in [entry or _GONE])
    with tempfile.TemporaryDirectory(prefix="af-overlay-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        run_git(repository.root, "-c", "core.splitIndex=false", "read-tree", tree, env=env)
        given = lines.encode("utf-8", "surrogateescape")
        run_git(repository.root, "update-index", "-z", "--index-info", input=given, env=env)
        return run_git(repository.root, "write-tree", env=env).strip()

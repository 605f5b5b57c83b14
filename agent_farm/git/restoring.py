"""Bringing a salvaged state back into a fresh worktree."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_farm.disk import cannot_write
from agent_farm.errors import AgentFarmError
from agent_farm.git.builder_tree import BuilderTree, place_of, run_in, run_in_bytes
from agent_farm.git.changes import tree_state
from agent_farm.git.command import git_environment, paths_of
from agent_farm.git.objects import read_blobs
from agent_farm.git.salvage import load_manifest
from agent_farm.git.snapshot import Manifest, private_git_dir, take_snapshot


@dataclass(frozen=True, slots=True)
class _Item:
    mode: str
    blob: str


def restore_state(salvage_ref: str, tree: Path | BuilderTree) -> None:
    """Index, changed, deleted and untracked files as they were, in a clean worktree at the salvaged HEAD.

    The result is compared with the salvage before this returns; submodules are left as they are.
    """
    worktree, manifest = place_of(tree), load_manifest(tree, salvage_ref)
    _require_fresh(tree, manifest)
    wanted = _items(tree, f"{salvage_ref}:worktree")
    present = _items(tree, "HEAD")
    try:
        _remove(worktree, [path for path in present if path not in wanted])
        _install_index(tree, run_in_bytes(tree, "cat-file", "blob", f"{salvage_ref}:index"))
        filtered = [
            path for path in wanted if path not in manifest.captured and wanted[path] != present.get(path)
        ]
        _check_out(tree, filtered, wanted)
        _write(tree, manifest.captured, wanted)
        for folder in manifest.empty_directories:
            (worktree / folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(worktree, error) from error
    _refresh_index(tree, manifest.captured)
    _require_same(salvage_ref, tree, wanted, manifest)


def _require_fresh(tree: Path | BuilderTree, manifest: Manifest) -> None:
    worktree, state = place_of(tree), tree_state(tree)
    if state.head != manifest.head:
        raise AgentFarmError(
            f"{worktree} is at {(state.head or 'no commit')[:12]}, the salvage at {manifest.head[:12]}"
        )
    if not state.clean:
        raise AgentFarmError(f"{worktree} has changes of its own", hint=f"git -C {worktree} status")


def _items(tree: Path | BuilderTree, name: str) -> dict[str, _Item]:
    found = {}
    for line in paths_of(run_in(tree, "ls-tree", "-r", "-z", name)):
        facts, _, path = line.partition("\t")
        mode, _, blob = facts.split(" ")
        found[path] = _Item(mode, blob)
    return found


def _remove(worktree: Path, paths: Iterable[str]) -> None:
    for path in paths:
        file = worktree / path
        if file.is_dir() and not file.is_symlink():
            continue  # a submodule's directory
        file.unlink(missing_ok=True)
        for parent in file.parents:
            if parent == worktree:
                break
            try:
                parent.rmdir()
            except OSError:
                break


def _install_index(tree: Path | BuilderTree, content: bytes) -> None:
    """As git does it: under its own lock, whole or not at all."""
    git_dir = private_git_dir(tree)
    lock = git_dir / "index.lock"
    descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(lock, git_dir / "index")
    except BaseException:
        lock.unlink(missing_ok=True)
        raise


def _check_out(tree: Path | BuilderTree, paths: Sequence[str], wanted: Mapping[str, _Item]) -> None:
    """Files that were as staged: git writes them, through the filters it wrote them with before."""
    files = [path for path in paths if wanted[path].mode != "160000"]
    if files:
        names = "".join(f"{path}\0" for path in files).encode("utf-8", "surrogateescape")
        words = ("checkout-index", "--force", "-z", "--stdin")
        run_in(tree, *words, input=names, base=git_environment())  # as in any checkout for a new builder


def _write(tree: Path | BuilderTree, captured: Mapping[str, int], wanted: Mapping[str, _Item]) -> None:
    worktree, contents = place_of(tree), read_blobs(tree, [wanted[path].blob for path in captured])
    for (path, mode), content in zip(captured.items(), contents, strict=True):
        file = worktree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            file.unlink()
        if wanted[path].mode == "120000":
            os.symlink(content, os.fsencode(file))
        else:
            _write_file(file, content, mode)


def _write_file(file: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as target:
        target.write(content)
        os.fchmod(descriptor, stat.S_IMODE(mode))


def _refresh_index(tree: Path | BuilderTree, captured: Mapping[str, int]) -> None:
    """Have the index know the new files' times and sizes.

    Where line-end or filter settings changed since the salvage, an unchanged file has another size on disk,
    which git takes for a change; without the old size it compares the content.
    """
    run_in(tree, "update-index", "-q", "--refresh", ok=(0, 1))
    changed = run_in(tree, "diff-files", "-z", "--name-only", "--ignore-submodules=all")
    odd = set(paths_of(changed)) - set(captured)
    lines = [
        line
        for line in paths_of(run_in(tree, "ls-files", "--stage", "-z"))
        if line.partition("\t")[2] in odd and " 0\t" in line
    ]
    if lines:
        entries = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
        run_in(tree, "update-index", "-z", "--index-info", input=entries)
        run_in(tree, "update-index", "-q", "--refresh", ok=(0, 1))


def _require_same(
    salvage_ref: str, tree: Path | BuilderTree, wanted: Mapping[str, _Item], manifest: Manifest
) -> None:
    """What is there now must read like what was salvaged; submodules were not brought back."""
    now = take_snapshot(tree)
    found = _items(tree, now.worktree_tree)
    differing = {path for path in manifest.captured if wanted[path] != found.get(path)}
    differing |= set(now.manifest.captured) - set(manifest.captured)
    differing |= wanted.keys() ^ found.keys()
    differing -= {path for path, item in wanted.items() if item.mode == "160000"}
    if differing or now.manifest.untracked != manifest.untracked:
        raise AgentFarmError(
            f"The state of {salvage_ref} did not come back whole; the salvage is kept",
            evidence=sorted(differing),
            hint=f"git show {salvage_ref}:worktree/",
        )

"""A worktree's state kept under a ref of its own, so that what is removed can come back byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent_farm.errors import DamagedFile, NotFound
from agent_farm.git.command import GitError, run_git, run_git_bytes
from agent_farm.git.objects import open_repo
from agent_farm.git.repository import Repository
from agent_farm.git.snapshot import Manifest, Snapshot, private_git_dir, take_snapshot

_REFS = "refs/agent-farm/salvage"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "agent-farm",
    "GIT_AUTHOR_EMAIL": "agent-farm@localhost",
    "GIT_COMMITTER_NAME": "agent-farm",
    "GIT_COMMITTER_EMAIL": "agent-farm@localhost",
}
# What git is in the middle of. Their commits may be on no branch any more.
_POINTERS = (
    "ORIG_HEAD",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "rebase-merge/orig-head",
    "rebase-merge/autostash",
    "rebase-apply/orig-head",
    "rebase-apply/autostash",
)


@dataclass(frozen=True, slots=True)
class Salvaged:
    """`nested` are repositories inside the worktree: their files are not in the salvage."""

    ref: str
    commit: str
    head: str
    branch: str | None
    at: datetime
    untracked: tuple[str, ...]
    changed: tuple[str, ...]
    nested: tuple[str, ...]


def salvage_ref(builder: str, epoch: int) -> str:
    return f"{_REFS}/{builder}/{epoch}"


def salvage(worktree: Path, ref: str, *, branch_tip: str | None = None) -> Salvaged:
    """Keep HEAD, index, changed and untracked files (and `branch_tip`) under `ref`, which must be new.

    Neither the worktree nor its index is touched. Ignored files are not kept.
    """
    commit = snapshot_commit(worktree, branch_tip=branch_tip)
    run_git(worktree, "update-ref", "--create-reflog", ref, commit, "0" * 40)
    return load_salvage(worktree, ref)


def snapshot_commit(checkout: Path, *, branch_tip: str | None = None) -> str:
    """The checkout's state as a commit that no ref names yet; `restore_state` brings it elsewhere."""
    snapshot = take_snapshot(checkout)
    parents = dict.fromkeys(
        [snapshot.manifest.head, *([branch_tip] if branch_tip else []), *_pointers(checkout)]
    )
    arguments = [argument for parent in parents for argument in ("-p", parent)]
    message = _message(snapshot).encode("utf-8", "surrogateescape")
    plain = ("-c", "i18n.commitEncoding=utf-8")
    return run_git(
        checkout, *plain, "commit-tree", snapshot.tree, *arguments, input=message, env=_IDENTITY
    ).strip()


def load_salvage(checkout: Path, ref: str) -> Salvaged:
    commit = run_git(checkout, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", ok=(0, 1)).strip()
    if not commit:
        raise NotFound(f"There is no salvage {ref}", hint="af restore --list")
    manifest = load_manifest(checkout, commit)
    seconds = int(run_git(checkout, "log", "-1", "--format=%ct", commit, "--"))
    return _salvaged(ref, commit, manifest, seconds)


def load_manifest(checkout: Path, commit: str) -> Manifest:
    try:
        data = run_git_bytes(checkout, "cat-file", "blob", f"{commit}:manifest.json")
    except GitError as error:
        raise DamagedFile(f"{commit} is no salvage", hint=f"git show {commit}") from error
    return Manifest.from_json(data, commit)


def list_salvages(repository: Repository, builder: str | None = None) -> list[Salvaged]:
    """A builder's, or all, newest first."""
    prefix = f"{_REFS}/{builder}/" if builder else f"{_REFS}/"
    # Asked of git, since GitPython reads only one of the ways in which git stores refs.
    lines = run_git(repository.root, "for-each-ref", "--format=%(objectname) %(refname)", prefix).splitlines()
    if not lines:
        return []
    found = []
    with open_repo(repository.root, repository.common_dir) as repo:
        for name, ref in (line.split(" ", 1) for line in lines):
            commit = repo.commit(name)
            if "manifest.json" not in commit.tree:
                raise DamagedFile(f"{ref} is no salvage", hint=f"git show {ref}")
            manifest = Manifest.from_json((commit.tree / "manifest.json").data_stream.read(), ref)
            found.append(_salvaged(ref, name, manifest, commit.committed_date))
    return sorted(found, key=lambda one: (one.at, one.ref), reverse=True)


def delete_salvage(repository: Repository, kept: Salvaged) -> None:
    """Let git collect it, unless the ref has come to name something else."""
    run_git(repository.root, "update-ref", "-d", kept.ref, kept.commit)


def _salvaged(ref: str, commit: str, manifest: Manifest, seconds: int) -> Salvaged:
    untracked = set(manifest.untracked)
    return Salvaged(
        ref=ref,
        commit=commit,
        head=manifest.head,
        branch=manifest.branch,
        at=datetime.fromtimestamp(seconds).astimezone(),
        untracked=tuple(manifest.untracked),
        changed=tuple(path for path in manifest.captured if path not in untracked),
        nested=tuple(manifest.nested),
    )


def _pointers(checkout: Path) -> list[str]:
    git_dir = private_git_dir(checkout)
    named = []
    for pointer in _POINTERS:
        try:
            named.append((git_dir / pointer).read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    question = "".join(f"{name}^{{commit}}\n" for name in named).encode()
    output = run_git(checkout, "cat-file", "--batch-check=%(objectname) %(objecttype)", input=question)
    return [line.split()[0] for line in output.splitlines() if line.endswith(" commit")]


def _message(snapshot: Snapshot) -> str:
    where = snapshot.manifest.branch or "a detached HEAD"
    return (
        f"Salvage of {where} at {snapshot.manifest.head[:12]}\n\n"
        "worktree/ holds the files as they were on disk, staged/ what was staged, manifest.json the rest.\n"
    )

"""Updates the record of a builder whose branch was renamed (`git branch -m`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, read_plain
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.git.changes import operation_of
from agent_farm.git.checkout import BuilderTree
from agent_farm.git.git_process import ask_git, git_deadline, run_git
from agent_farm.git.remotes import find_base

if TYPE_CHECKING:
    from agent_farm.farm.git_state import GitState

_RENAME = re.compile(rb"\tBranch: renamed refs/heads/(\S+) to refs/heads/(\S+)$", re.MULTILINE)
_LONGEST_LOG = 1 << 26
# Renames are rare, and one that is not noticed now is noticed next time.
_SECONDS = 1.0


def follow_renames(
    farm: Farm, records: Iterable[BuilderRecord], states: Mapping[str, GitState]
) -> dict[str, BuilderRecord]:
    """The new records, by id, of builders whose state shows another branch checked out.

    A builder that another command is working on is left to that command.
    """
    found = dict[str, BuilderRecord]()
    for record in records:
        state = states.get(record.id)
        if state is None or state.branch in (None, record.branch):
            continue
        with (
            suppress(AgentFarmError),
            git_deadline(_SECONDS),
            file_lock(farm.paths.builder_lock(record.id), wait=0),
        ):
            now = follow_rename(farm, record)
            if now.branch != record.branch:
                found[record.id] = now
    return found


def follow_rename(farm: Farm, record: BuilderRecord) -> BuilderRecord:
    """The record as it should be; the caller holds the builder's lock.

    If its branch is gone, it is replaced by the branch checked out in the worktree, now or when it was
    renamed, provided that it continues from where the builder began, belongs to no other builder, and is not
    the builder's target.
    """
    tree = farm.tree(record)
    branch = tree.checked_out().branch or _renamed_to(tree, record.branch)
    if branch in (None, record.branch) or operation_of(tree) or farm.repository.branch_commit(record.branch):
        return record
    if branch in find_base(farm.repository, record.base).branches or not _goes_on(farm, record, str(branch)):
        return record
    with farm.registry.edit() as records:
        now = records.get(record.id)
        if now is None or any(other.branch == branch for other in records.values()):
            return record
        # af only removes what it made, and not a branch that had another name before
        made = now.new_branch and _was_renamed(farm, now.branch, str(branch))
        records[now.id] = now = replace(now, branch=str(branch), new_branch=made)
    from agent_farm.farm.own_events import note  # loads the pane's journal, and renames are rare

    note(farm, now, "renamed", f"its branch, from {record.branch} to {branch}")
    return now


def _renamed_to(tree: BuilderTree, branch: str) -> str | None:
    """Its new name, according to git's log of HEAD, which may have been detached since."""
    name: str | None = None
    with suppress(OSError):
        for old, new in _RENAME.findall(read_plain(tree.git_dir / "logs/HEAD", limit=_LONGEST_LOG)):
            if os.fsdecode(old) == (name or branch):
                name = os.fsdecode(new)
    return name


def _goes_on(farm: Farm, record: BuilderRecord, branch: str) -> bool:
    question = ("merge-base", "--is-ancestor", record.base_commit, f"refs/heads/{branch}")
    return farm.repository.is_valid_branch(branch) and ask_git(farm.root, *question)[0] == 0


def _was_renamed(farm: Farm, old: str, new: str) -> bool:
    """git records it in the branch's own reflog."""
    log = run_git(farm.root, "reflog", "show", "--format=%gs", f"refs/heads/{new}", "--", ok=(0, 128))
    return any(line.startswith(f"Branch: renamed refs/heads/{old} to ") for line in log.splitlines())

"""`af diff`, `af merge`, `af conflicts`: see, land, foresee."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from agent_farm.builders.record import BuilderRecord
from agent_farm.consent import Ask, Request, require_consent
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.holding import hold
from agent_farm.git.changes import tree_state
from agent_farm.git.merge_trees import merge_tree_conflicts
from agent_farm.git.merging import Merged, Strategy, merge_branch
from agent_farm.git.showing import diff_branch, diff_worktree
from agent_farm.launch import as_command
from agent_farm.paths import SETTINGS_NAME
from agent_farm.runtimes.environment import allowed_environment


@dataclass(frozen=True, slots=True)
class Landed:
    """`left_behind` are files of the builder that are not committed, and so did not land."""

    merged: Merged
    left_behind: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two branches that cannot both land as they are; the second may be the base."""

    one: str
    other: str
    files: tuple[str, ...]


def diff(farm: Farm, record: BuilderRecord, *, committed: bool, stat: bool, color: bool) -> str:
    """What the builder changed since it began, uncommitted and untracked files included."""
    if committed or not record.worktree_path.is_dir():
        return diff_branch(
            farm.repository, record.base_commit, f"refs/heads/{record.branch}", stat=stat, color=color
        )
    return diff_worktree(farm.repository, record.base_commit, record.worktree_path, stat=stat, color=color)


def land(
    farm: Farm,
    record: BuilderRecord,
    *,
    strategy: str | None = None,
    message: str | None = None,
    here: bool = False,
    yes: bool = False,
    ask: Ask | None = None,
) -> Landed:
    """Bring the builder's commits into the branch of the main checkout, or change nothing."""
    with hold(farm, record.id) as record:
        _require_base(farm, record, here)
        left = _uncommitted(record)
        _run_check(farm, record, yes, ask)
        chosen = cast(Strategy, strategy or farm.settings.text("merge.strategy"))
        return Landed(merge_branch(farm.repository, record.branch, chosen, message), left)


def foresee_conflicts(farm: Farm, records: Sequence[BuilderRecord]) -> list[Conflict]:
    """Every pair of builders, and every builder with its base, that git could not merge by itself."""
    names = {record.id: f"refs/heads/{record.branch}" for record in records}
    names |= {record.base: record.base for record in records}
    pairs = [*combinations([record.id for record in records], 2), *((r.id, r.base) for r in records)]
    found = merge_tree_conflicts(farm.repository, [(names[one], names[other]) for one, other in pairs])
    return [Conflict(one, other, files) for (one, other), files in zip(pairs, found, strict=True) if files]


def _require_base(farm: Farm, record: BuilderRecord, here: bool) -> None:
    head = farm.repository.head(farm.root)
    if not here and head.branch != record.base and record.base != head.commit:
        raise AgentFarmError(
            f"{record.id} began from {record.base}, and the main checkout is on {head.branch or 'no branch'}",
            why="--here lands it on the branch that is checked out now.",
            hint=as_command("git", "-C", farm.root, "switch", record.base),
        )


def _uncommitted(record: BuilderRecord) -> tuple[str, ...]:
    if not record.worktree_path.is_dir():
        return ()
    state = tree_state(record.worktree_path)
    return (*state.dirty, *state.untracked)


def _run_check(farm: Farm, record: BuilderRecord, yes: bool, ask: Ask | None) -> None:
    """The farm's own check, in the builder's worktree; its output is the user's to see."""
    command = farm.settings.text("merge.check")
    if command is None:
        return
    require_consent(farm.root, [Request(f"{SETTINGS_NAME} merge.check", command)], yes=yes, ask=ask)
    env = allowed_environment(os.environ, declared=farm.settings.items("env.pass"))
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=record.worktree,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=2,
        check=False,
    )
    if done.returncode:
        raise AgentFarmError(
            f"merge.check failed for {record.id} with exit code {done.returncode}",
            why=f"Nothing was merged. It ran: {command}",
            hint=as_command("af", "send", record.id, f"Make this pass: {command}"),
        )

"""`af merge`: land what a builder committed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from agent_farm.builders.record import BuilderRecord
from agent_farm.consent import Ask, require_consent
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.farm.history import note
from agent_farm.farm.holding import hold, landing_lock
from agent_farm.farm.listing import read_status
from agent_farm.git.changes import tree_state
from agent_farm.git.checkouts import main_checkout
from agent_farm.git.merging import MergeConflicts, Merged, NoFastForward, Strategy, merge_commit
from agent_farm.git.remotes import Base, find_base
from agent_farm.git.settling import Settled, settle_interrupted
from agent_farm.git.worktrees import branch_checked_out_at
from agent_farm.launch import as_command
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.shield import Shield

_NAMED = 5  # files that a message to a builder names


@dataclass(frozen=True, slots=True)
class Landed:
    """`left_behind` are files of the builder that are not committed, and so did not land.

    `settled` is a merge before it that was cut short.
    """

    merged: Merged
    left_behind: tuple[str, ...]
    settled: Settled | None = None


def land(
    farm: Farm,
    record: BuilderRecord,
    *,
    strategy: str | None = None,
    message: str | None = None,
    here: bool = False,
    yes: bool = False,
    ask: Ask | None = None,
    shield: Shield | None = None,
) -> Landed:
    """Bring the builder's commits into the branch of the main checkout, or change nothing.

    Signals that come during the last step wait for the end of `shield`'s block.
    """
    farm.settings.require_good()
    checkout = main_checkout(farm.repository)
    with landing_lock(farm, checkout) as lock, hold(farm, record.id) as record:
        settled = settle_interrupted(checkout)
        _require_base(farm, record, here)
        left = _uncommitted(record)
        tip = _tip(farm, record)
        _run_check(farm, record, yes, ask)
        chosen = cast(Strategy, strategy or farm.settings.text("merge.strategy"))
        try:
            merged = merge_commit(
                farm.repository,
                checkout,
                tip,
                record.branch,
                chosen,
                message,
                fds=[lock],
                shield=shield,
            )
        except MergeConflicts as error:
            error.hint = _resolving(farm, record, chosen, error.evidence)
            raise
        except NoFastForward as error:
            error.hint = as_command("af", "merge", "--strategy", "merge", record.id)
            raise
        note(farm, record, "merged", f"into {merged.into}, now {merged.after[:12]}")
        return Landed(merged, left, settled)


def _require_base(farm: Farm, record: BuilderRecord, here: bool) -> None:
    """The main checkout is on the branch the builder is meant for; a tag or a commit means any."""
    head = farm.repository.head(farm.root)
    if here or record.base in (head.branch, head.commit):
        return
    base = find_base(farm.repository, record.base)
    if base.exists and (not base.is_branch or head.branch in base.branches):
        return
    if head.branch is None and not base.branches:
        return  # there is nothing to land on, which merging says best
    gone = "" if base.exists else ", which is gone"
    raise AgentFarmError(
        f"{record.id} began from {record.base}{gone}, and the main checkout is on "
        f"{head.branch or 'no branch'}",
        why="--here lands it on the branch that is checked out now.",
        hint=_way_to(farm, base) or as_command("af", "merge", "--here", record.id),
    )


def _way_to(farm: Farm, base: Base) -> str | None:
    """How the main checkout comes to be on a local branch the base stands for; git shares none of them."""
    free = (name for name in base.branches if branch_checked_out_at(farm.repository, name) is None)
    branch = next(free, None)
    return as_command("git", "-C", farm.root, "switch", branch) if branch is not None else None


def _resolving(farm: Farm, record: BuilderRecord, strategy: Strategy, files: Sequence[str]) -> str:
    """The command that has the builder resolve what stands against landing it; it is the one who knows."""
    branch = farm.repository.head(farm.root).branch or record.base
    how = f"Rebase your branch onto {branch}" if strategy == "rebase" else f"Merge {branch} into your branch"
    names = [file for file in files if file.isprintable()][:_NAMED]
    more = [f"{len(files) - len(names)} more"] if len(files) > len(names) else []
    what = f"{how} and resolve the conflicts in {', '.join([*names, *more])}"
    send = as_command("af", "send", record.id, what)
    if read_status(farm, record).is_finished:
        return f"{as_command('af', 'resume', record.id)} && {send}"
    return send


def _tip(farm: Farm, record: BuilderRecord) -> str:
    tip = farm.repository.branch_commit(record.branch)
    if tip is None:
        raise NotFound(f"There is no branch {record.branch}")
    return tip


def _uncommitted(record: BuilderRecord) -> tuple[str, ...]:
    if not record.worktree_path.is_dir():
        return ()
    state = tree_state(record.worktree_path)
    return (*state.dirty, *state.untracked)


def _run_check(farm: Farm, record: BuilderRecord, yes: bool, ask: Ask | None) -> None:
    """The farm's own check, in the builder's worktree; its output is the user's to see."""
    if farm.settings.values["merge.check"] is None:
        return
    require_consent(farm.root, farm.settings.requests(("merge.check", "env.pass")), yes=yes, ask=ask)
    command = str(farm.settings.text("merge.check"))
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

"""Finds files of af and git that a killed process or a full disk left, and that get in others' way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import is_locked, stale_temporaries
from agent_farm.farm.checkout_cost import pool_directory
from agent_farm.farm.checks.finding import Finding, partly_written
from agent_farm.farm.ending import forget_secrets, has_secrets
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status, read_statuses
from agent_farm.farm.locks import hold
from agent_farm.farm.ready_worktrees import half_made_slots, remove_half_made_slots
from agent_farm.git.checkout import Checkout
from agent_farm.git.left_locks import left_locks
from agent_farm.launch import as_command
from agent_farm.sessions.credential_store import unreadable_credentials
from agent_farm.sessions.database import database_problem


def check_database(farm: Farm) -> Iterator[Finding]:
    """Without it no server starts, and builders have no tools."""
    file = farm.paths.state / "butler.db"
    problem = database_problem(file)
    if problem is not None:
        aside = as_command("mv", file, f"{file}.damaged")
        yield Finding("problem", problem.sentence, problem.hint or aside)
    elif os.path.lexists(file):
        for name, error in unreadable_credentials(file).items():
            yield Finding("problem", error.sentence, as_command("af", "credentials", "set", name))


def check_secrets(farm: Farm) -> Iterator[Finding]:
    """Left by a start that was killed before its launcher was up."""
    records = farm.registry.read()
    found = [record for record in records.values() if has_secrets(farm.run(record.id))]
    statuses = read_statuses(farm, [record for record in found if record.state != "creating"])
    for record in found:
        if record.id in statuses and statuses[record.id].is_finished:
            what = f"{record.id}: a start that was cut short left the values of its environment on disk"
            yield Finding("problem", what, heal=partial(_forget, farm, record))


def _forget(farm: Farm, record: BuilderRecord) -> str:
    with hold(farm, record.id) as current:
        if read_status(farm, current).is_finished:
            forget_secrets(farm.run(current.id))
    return "they are removed"


def check_pool(farm: Farm) -> Iterator[Finding]:
    slots = half_made_slots(farm)
    if slots:
        names = ", ".join(slot.name for slot in slots)
        what = f"the pool's worktrees {names} were not completed"
        yield Finding("problem", what, heal=partial(_clear_pool, farm))
    for path in stale_temporaries(pool_directory(farm)):
        yield partly_written(path)


def _clear_pool(farm: Farm) -> str:
    remove_half_made_slots(farm)
    return "they are removed; nobody has worked in them"


def check_git_locks(farm: Farm) -> Iterator[Finding]:
    """git leaves its lock file behind when it is killed, and from then on refuses to work.

    Whose it is cannot be told for sure: an editor may be open for a commit message. So it is only removed
    when `af` resumes a step that it began there.
    """
    places = [(farm.repository.git_dir, farm.root)]
    places += [
        (farm.repository.common_dir / "worktrees" / record.id, record.worktree_path)
        for record in farm.registry.read().values()
        if not is_locked(farm.paths.builder_lock(record.id))
    ]
    for git_dir, tree in places:
        for lock in left_locks(Checkout(tree, git_dir, farm.repository.common_dir)):
            what = f"git left {lock} behind, and refuses to work in {tree} while it is there"
            yield Finding("problem", what, as_command("rm", lock))

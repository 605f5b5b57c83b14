"""Where a merge lands: the checkout in which the user is, and its lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, is_locked
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import Checkout, Head, checkout_at
from agent_farm.git.remotes import Base, find_base
from agent_farm.git.worktrees import branch_checked_out_at, list_worktrees
from agent_farm.launch import as_command

Tell = Callable[[str], None]

LANDING_SECONDS = 600.0  # each merge that is waited for may run merge.check


def landing_place(farm: Farm) -> Checkout:
    """The user's current checkout; from a builder's worktree, the main checkout."""
    where = farm.repository.checkout
    if where != farm.root and where.parent == farm.paths.worktrees:
        where = farm.root
    return checkout_at(farm.repository, where)


def require_base(
    farm: Farm, record: BuilderRecord, checkout: Checkout, head: Head, *, here: bool, verb: str = "merge"
) -> None:
    """Raise unless the checkout is on the branch that the builder's work is for; a tag or commit allows any.

    `verb` is the command that a hint repeats.
    """
    if here or record.base in (head.branch, head.commit):
        return
    base = find_base(farm.repository, record.base)
    if base.exists and (not base.is_branch or head.branch in base.branches):
        return
    if head.branch is None:
        return  # there is nothing to land on, which merging says best
    if record.stack is not None:
        raise AgentFarmError(
            f"{record.id} stands on the work of {record.stack}",
            why=f"Once that has landed, its own commits are moved onto what it landed on. "
            f"--here lands both on {head.branch}.",
            hint=as_command("af", "sync", record.id),
        )
    gone = "" if base.exists else ", which is gone"
    place = "the main checkout" if checkout.path == farm.root else checkout.path
    raise AgentFarmError(
        f"{record.id} began from {record.base}{gone}, and {place} is on {head.branch}",
        why=f"--here lands it on {head.branch}.",
        hint=_way_to(farm, record, checkout, base, verb) or as_command("af", verb, "--here", record.id),
    )


def _way_to(farm: Farm, record: BuilderRecord, checkout: Checkout, base: Base, verb: str) -> str | None:
    """The command that gets to the local branch that the base stands for."""
    for branch in base.branches:
        place = branch_checked_out_at(farm.repository, branch)
        if place is None:
            return as_command("git", "-C", checkout.path, "switch", branch)
        if place.parent != farm.paths.worktrees and _has(farm, place, branch):
            return f"{as_command('cd', place)} && {as_command('af', verb, record.id)}"
    return None


def _has(farm: Farm, place: Path, branch: str) -> bool:
    """Whether the worktree has the branch checked out, and is not only rebasing it."""
    return any(tree.path == place and tree.branch == branch for tree in list_worktrees(farm.repository))


@contextmanager
def landing_lock(farm: Farm, checkout: Checkout, *, tell: Tell | None = None) -> Iterator[int]:
    """One landing at a time in a checkout; this lock is taken before a builder's.

    `tell` gets a message if the user has to wait.
    """
    path = landing_lock_path(farm, checkout)
    if tell is not None and is_locked(path):
        tell(f"Waiting for another merge into {checkout.path}")
    busy = LockTaken(
        f"Another merge into {checkout.path} is under way",
        why=f"It did not end within {LANDING_SECONDS:g} s. Nothing was merged.",
    )
    with file_lock(path, wait=LANDING_SECONDS, inherit=True, busy=busy) as descriptor:
        yield descriptor


def landing_lock_path(farm: Farm, checkout: Checkout) -> Path:
    return farm.paths.merge_lock(checkout.worktree_name)

"""Moves work between machines: pushes bases there, fetches builders' commits from there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from agent_farm.builders.ref_names import is_branch_name
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.about_checkpoint import about_of
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Placed
from agent_farm.fleet.calling import is_of_cluster, line_to
from agent_farm.git.bounded import TooLong
from agent_farm.git.checkpoint_reading import read_checkpoint
from agent_farm.git.checkpoints import drop, kept_ref, set_aside
from agent_farm.git.divergence import commit_at, resolve_commits
from agent_farm.git.other_machine import (
    WayThere,
    coming_work_ref,
    fetch_refs,
    fetched_commit,
    is_further,
    make_branch,
    move_branch,
    push_commits,
    take_work,
    too_much,
)
from agent_farm.git.unpacked import changed_bytes

_REFS = "refs/remotes/home/"


def line_of(farm: Farm, book: Book, host: str) -> WayThere:
    """How git reaches the machine, with a bound on what it may send."""
    return line_to(book.machine(host), most_bytes=most_fetched(farm))


def most_fetched(farm: Farm) -> int:
    return farm.settings.number("fleet.fetch_megabytes") * 1_000_000


def push(farm: Farm, book: Book, host: str, refs: Mapping[str, str], *, wait: float | None = None) -> None:
    """One push at a time: git there refuses the second of two that move the same ref."""
    with file_lock(farm.paths.locks / f"fleet-{host}.lock", wait=wait):
        machine = book.machine(host)
        if is_of_cluster(machine):
            from agent_farm.operations.fleet.pack_calls import send_packs  # few farms have a cluster

            send_packs(farm, book, host, refs)
        else:
            push_commits(farm.repository, line_of(farm, book, host), refs)


def fetch(farm: Farm, book: Book, host: str, refs: Mapping[str, str]) -> None:
    """Fetch their refs and history under the names given for them here; no more than the limit."""
    if is_of_cluster(book.machine(host)):
        from agent_farm.operations.fleet.pack_calls import fetch_packs

        fetch_packs(farm, book, host, refs, most_bytes=most_fetched(farm))
    else:
        fetch_refs(farm.repository, line_of(farm, book, host), refs)


def ref_there(id: str) -> str:
    """The ref on its machine from which a builder starts."""
    return f"refs/agent-farm/home/{id}"


def base_there(farm: Farm, base: str) -> dict[str, str]:
    """The ref of the base on a machine, and its commit now; {} if the base is not a branch."""
    commit = farm.repository.branch_commit(base)
    return {f"{_REFS}{base}": commit} if commit else {}


def push_bases(farm: Farm, book: Book, host: str, *, wait: float | None = None) -> dict[str, str]:
    """Push the bases of builders there as they are here now, so that the machine can tell what has landed."""
    machine = book.machine(host)
    bases = {placed.base for placed in book.on(host).values()}
    tips = resolve_commits(farm.repository, {f"refs/heads/{base}" for base in bases}) if bases else {}
    wanted = {base: tip for base in bases if (tip := tips.get(f"refs/heads/{base}"))}
    if new := {base: tip for base, tip in wanted.items() if machine.pushed.get(base) != tip}:
        push(farm, book, host, {f"{_REFS}{base}": tip for base, tip in new.items()}, wait=wait)
    return {**machine.pushed, **wanted}


def fetch_work(farm: Farm, book: Book, id: str, *, if_new: bool = False) -> None:
    """Move the builder's branch here to where it is there; refused if somebody has moved it here.

    With `if_new`, the machine was asked just now, and is not asked for a commit that is here already.
    """
    placed = book.builders[id]
    theirs = placed.row.record.branch if placed.row else placed.branch
    before = fetched_commit(farm.repository, id)
    git = placed.row.git if placed.row else None
    if if_new and before and git and (git.branch, git.commit) == (theirs, before):
        move_branch(farm.repository, placed.branch, before, before)
        return
    if not is_branch_name(theirs):
        raise AgentFarmError(f"{theirs!r:.80} cannot be the branch of {id}")
    coming = coming_work_ref(id)
    fetch(farm, book, placed.host, {f"refs/heads/{theirs}": coming})
    # the second half: another process fetched it too, and took it a moment ago
    commit = commit_at(farm.repository, coming) or fetched_commit(farm.repository, id)
    if commit is None:
        raise NotFound(f"The branch of {id} could not be fetched")
    try:
        _require_small(farm, placed, commit, before)
    except AgentFarmError:
        drop(farm.repository, coming)
        raise
    take_work(farm.repository, id, placed.branch, commit, before or placed.base_commit)


def _require_small(farm: Farm, placed: Placed, commit: str, before: str | None) -> None:
    """Limits what a checkout would write: a pack may unpack to any multiple of its size."""
    base = farm.repository.branch_commit(placed.base)
    begun = {one for one in (before or placed.base_commit, base) if one is not None}
    try:
        size = min(changed_bytes(farm.repository, one, commit) for one in begun)
    except TooLong as error:
        raise too_much(placed.host) from error
    if size > most_fetched(farm):
        raise too_much(placed.host)


def make_branch_again(farm: Farm, id: str, placed: Placed) -> None:
    """For a restored builder: make its branch where it was last fetched."""
    tip = fetched_commit(farm.repository, id)
    if tip and farm.repository.branch_commit(placed.branch) is None:
        make_branch(farm.repository, placed.branch, tip)


def take_checkpoint(farm: Farm, id: str, placed: Placed) -> None:
    """Move the builder's branch here to its last checkpoint, if that is further on."""
    if placed.checkpoint is None or commit_at(farm.repository, kept_ref(id)) is None:
        return
    found = read_checkpoint(farm.repository, kept_ref(id), most_bytes=most_fetched(farm))
    tip = about_of(found, id).tip
    before = fetched_commit(farm.repository, id)
    if tip and is_further(farm.repository, tip, before or placed.base_commit):
        take_work(farm.repository, id, placed.branch, tip, before or placed.base_commit)


def take_what_came(farm: Farm, id: str, placed: Placed) -> str | None:
    """Save the last checkpoint of a builder that leaves the list, since it may be all that is left.

    The branch gets its commits, another ref keeps the rest. Returns a message about that.
    """
    with suppress(AgentFarmError):  # the branch was moved here, or is checked out
        take_checkpoint(farm, id, placed)
    ref = set_aside(farm.repository, id)
    return f"{ref} has the work of {id} at its last checkpoint, committed or not" if ref else None

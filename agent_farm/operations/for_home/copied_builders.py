"""Makes checkpoints of builders and builders from checkpoints, and ends builders that moved elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.ref_names import ObjectName
from agent_farm.consent import Consent
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError
from agent_farm.farm.checkpoint_looks import checkpoint_all
from agent_farm.farm.checkpointing import make_checkpoint
from agent_farm.farm.farm import Farm
from agent_farm.farm.guarded_removal import Waived, prune_several
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.placing_again import place_again
from agent_farm.farm.removal import settle_alone
from agent_farm.farm.trash import begun_removals, list_kept
from agent_farm.fleet.terms import hold, raise_lowest, read_terms, require_valid, superseded
from agent_farm.operations.operation import Answer, Context, Failure
from agent_farm.operations.prune import Removal
from agent_farm.operations.restore import Restore, Restored, restore
from agent_farm.operations.resume import start_again
from agent_farm.operations.shown import BuilderShown, show_builder
from agent_farm.operations.stop import stop_running
from agent_farm.typed import make_known

SUPERSEDED = "it was placed again elsewhere"
MOVES = "it is placed elsewhere"
# In the middle of a turn, or possibly so.
AT_WORK = ("creating", "preparing", "working", "waiting", "limited", "unknown")


class Copy(Struct, frozen=True):
    id: str
    commit: ObjectName


class Copies(Answer):
    """The requested checkpoints, as far as they exist now."""

    made: tuple[Copy, ...]
    failed: tuple[Failure, ...] = ()


class Again(Struct, frozen=True):
    """The builder to place: `record` as it was elsewhere; `ref` is its checkpoint here."""

    record: dict[str, Any]
    ref: str
    term: int
    most_bytes: int
    say: str | None = None
    yes: Consent = False


class PlacedAgain(Answer):
    """`problem` says why its runtime was not started."""

    builder: BuilderShown
    started: bool
    problem: str | None = None


class HandOver(Struct, frozen=True):
    """`interrupt`: end it even in the middle of a turn."""

    id: str
    interrupt: bool


class Withdraw(Struct, frozen=True):
    """No builder of that id with a lower term may come. `held` is the term under which home placed it."""

    id: str
    term: int
    held: int


class Withdrawn(Answer):
    """Whether there is such a builder; if not, none with a lower term will come. `removal` is that of the one
    home placed, if it is in the trash."""

    there: bool
    removal: Removal | None = None


def context_for_home(farm: Farm, told: list[str]) -> Context:
    return Context(
        farm, whole_ids=True, naming_agrees=True, tell=told.append, directory=farm.root, environ=os.environ
    )


def end_superseded(farm: Farm, fences: Mapping[str, int], told: list[str]) -> None:
    """Stop builders that were placed elsewhere; their worktrees stay as they are."""
    for id in superseded(read_terms(farm), fences):
        if id in farm.registry.read():
            ((_, found),) = stop_running(farm, [id], SUPERSEDED)
            if isinstance(found, AgentFarmError):
                told.append(f"{id} could not be stopped: {found.sentence}")
                continue
        raise_lowest(farm, id, fences[id])


def checkpoints(farm: Farm, ids: tuple[str, ...]) -> Copies:
    with file_lock(farm.paths.locks / "checkpoints.lock"):
        records = farm.records()
        wanted = {id: records[id] for id in ids if id in records and records[id].is_made}
        found = checkpoint_all(farm, wanted, records.ids)
    return Copies(
        tuple(Copy(id, one) for id, one in found.items() if isinstance(one, str)),
        tuple(Failure.of(id, one) for id, one in found.items() if isinstance(one, AgentFarmError)),
    )


def handed_over(farm: Farm, asked: HandOver) -> Copies:
    """End the builder; its checkpoint has the state it was in, in which it continues elsewhere."""
    id = asked.id
    with file_lock(farm.paths.locks / "checkpoints.lock"):
        record = farm.require(id)
        status = read_statuses(farm, [record])[id]
        if status.state in AT_WORK and not asked.interrupt:
            raise AgentFarmError(f"{id} is {status.state}", why="Its turn would be cut short.")
        state = status.state
        if state == "stopped" and record.reason == MOVES:  # asked again, because the answer was lost
            state = "interrupted" if status.cut_short else "idle"
        elif not status.is_finished:
            only = None if asked.interrupt else status.state
            ((_, found),) = stop_running(farm, [id], MOVES, only=only)
            if isinstance(found, AgentFarmError):
                raise found
        record = farm.require(id)
        status = replace(read_statuses(farm, [record])[id], state=state)
        tip = farm.repository.branch_commit(record.branch)
        return Copies((Copy(id, make_checkpoint(farm, record, status, tip, None)),))


def placed_again(farm: Farm, asked: Again, told: list[str]) -> PlacedAgain:
    """Asking twice makes it once."""
    make_known(BuilderRecord)
    record = msgspec.convert(asked.record, BuilderRecord)
    terms = read_terms(farm)
    require_valid(terms, record.id, asked.term)
    if record.id in farm.records() and terms.held.get(record.id) == asked.term:
        return PlacedAgain(show_builder(farm, record.id), started=True)
    why = "placed here from its last checkpoint"
    record, starts = place_again(farm, record, asked.ref, most_bytes=asked.most_bytes, why=why)
    hold_or_undo(farm, record.id, asked.term)
    return start_placed(context_for_home(farm, told), record.id, asked.say, starts=starts, yes=asked.yes)


def start_placed(context: Context, id: str, say: str | None, *, starts: bool, yes: Consent) -> PlacedAgain:
    problem = None
    if starts:
        ((_, found),) = start_again(context, [id], {} if say is None else {id: say}, yes=yes)
        problem = found.sentence if isinstance(found, AgentFarmError) else None
    return PlacedAgain(show_builder(context.farm, id), starts and problem is None, problem)


def withdrawn(farm: Farm, asked: Withdraw) -> Withdrawn:
    for kept in begun_removals(farm, asked.id):
        settle_alone(farm, kept)
    if asked.id in farm.records().ids:
        return Withdrawn(True)
    raise_lowest(farm, asked.id, asked.term)
    kept_ones = list_kept(farm, asked.id)
    is_that = kept_ones and read_terms(farm).held.get(asked.id) == asked.held
    return Withdrawn(False, Removal.of(kept_ones[0]) if is_that else None)


def restored(context: Context, asked: Restore) -> Restored:
    """Asking twice restores it once: the connection may have died before the answer."""
    farm = context.farm
    if asked.epoch is None and asked.id in farm.records() and not begun_removals(farm, asked.id):
        return Restored(show_builder(farm, asked.id))
    return restore.answer_to(context, asked)


def hold_or_undo(farm: Farm, id: str, term: int) -> None:
    """Record the term, or move the builder to the trash. Home may have dropped it while it was made, or the
    disk may be full: home then believes that it was not made."""
    try:
        hold(farm, id, term)
    except (AgentFarmError, OSError):
        list(prune_several(farm, [id], Waived(True, True, True)))
        raise

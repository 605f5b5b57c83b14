"""`queue`: start waiting builders, if there is room and what they wait for has landed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta, ValidationError, convert
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Records
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, DamagedFile, NoRoom, as_farm_error
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.waiting import (
    QueuedSpawn,
    drop_stale_orders,
    has_room,
    in_order,
    load_order,
    lock_path,
    mark_looked,
    queue_directory,
)
from agent_farm.forge.issues import Issue
from agent_farm.landing.arrival import arrived_base
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, Nothing, OfSeveral, gathered
from agent_farm.operations.shown import BuilderShown
from agent_farm.operations.spawn_plan import preflight
from agent_farm.operations.spawn_request import Spawn
from agent_farm.operations.spawn_steps import make_builder
from agent_farm.operations.stop import stop_running

_TURN_SECONDS = 120.0
# A builder that could not be started is retried after this long, not at every look.
_AGAIN_SECONDS = 30.0


class Waiting(Answer):
    """`reason` gives its place, what it waits for, and why it could not be started."""

    id: str
    title: str
    reason: str | None


class Queue(OfSeveral):
    """Builders in `failed` could not be started and keep waiting."""

    started: Annotated[tuple[str, ...], Meta(description="Ids of builders that were just started")]
    waiting: tuple[Waiting, ...]


Part = BuilderShown | Failure | Waiting


@in_parts(
    "Start waiting builders if there is room for them, and list those still waiting",
    gathered(Queue, started=(BuilderShown, "id"), waiting=Waiting, failed=Failure),
    effect="changes",
    repeats=True,
    outside=True,
    pool="start",
    details="This also happens by itself when a builder ends or is stopped, and with the next command.",
)
def queue(context: Context, request: Nothing) -> Iterator[Part]:
    farm = context.farm
    somebody_waits = queue_directory(farm.paths).is_dir()
    if somebody_waits:
        mark_looked(farm)  # otherwise the next line would start another process to look
    farm.records()  # restores what was interrupted
    if somebody_waits:
        with file_lock(lock_path(farm.paths), wait=_TURN_SECONDS):
            drop_stale_orders(farm)
            yield from _start_all(context, farm)
    waiting = in_order(farm.registry.read())
    statuses = read_statuses(farm, waiting)
    for record in waiting:
        yield Waiting(id=record.id, title=record.title, reason=statuses[record.id].reason)


def _start_all(context: Context, farm: Farm) -> Iterator[BuilderShown | Failure]:
    """One after another, in order; one that cannot be started does not delay the others."""
    tried = set[str]()
    while True:
        mark_looked(farm)
        records = farm.registry.read()
        left = [record for record in in_order(records) if record.id not in tried]
        if not left:
            return
        record = left[0]
        tried.add(record.id)
        if _was_just_tried(farm, record):
            continue
        try:
            base = _base(farm, record)
            if base is None:
                continue
            if not has_room(farm, records) and not _make_room(farm, records):
                return
            yield _start(context, farm, record, base)
        except NoRoom:
            return
        except (AgentFarmError, OSError) as error:
            found = as_farm_error(error)
            if _note(farm, record, found.sentence):
                yield Failure.of(record.id, found)


def _base(farm: Farm, record: BuilderRecord) -> str | None:
    """Where it starts from; None while a builder that it waits for has not landed."""
    base: str | None = record.base
    for id in record.awaits:
        base = arrived_base(farm, id, record.base)
        if base is None:
            return None
    return base


def _make_room(farm: Farm, records: Records) -> bool:
    """Stop the builder whose turn ended first, if the settings say so; af resume continues it."""
    if not farm.settings.flag("limits.stop_idle"):
        return False
    begun = [record for record in records.values() if record.state != "queued"]
    statuses = read_statuses(farm, begun)
    idle = [record for record in begun if statuses[record.id].state == "idle"]
    for record in sorted(idle, key=lambda record: statuses[record.id].at or 0):
        why = "by af queue, as its turn had ended"
        ((_, ended),) = stop_running(farm, [record.id], why, only="idle")
        if not isinstance(ended, AgentFarmError):  # otherwise it is working again
            return True
    return False


def _start(context: Context, farm: Farm, record: BuilderRecord, base: str) -> BuilderShown:
    """Start it as if it were requested now, from where it was requested.

    Consent is asked again, because nobody has seen what the repository has come to want since.
    """
    order = load_order(farm, record.id)
    try:
        request, issue = convert(order.request, Spawn), _issue_of(order)
    except ValidationError as error:
        raise DamagedFile(f"The task of {record.id} cannot be read", why=str(error)) from None
    if request.branch is None and request.stack is None:
        request = replace(request, base=base)
    request = replace(request, after=None, name=None, yes=False)
    place = Path(order.directory)
    place = place if place.is_dir() else farm.root
    own = open_farm(place)
    if own.root != farm.root:  # another repository is there now
        own, place = farm, farm.root
    there = Context(own, ask=context.ask, directory=place)
    return make_builder(own, preflight(there, request, issue), record)


def _issue_of(order: QueuedSpawn) -> Issue | None:
    if order.issue is None:
        return None
    return convert(order.issue, Issue)


def _was_just_tried(farm: Farm, record: BuilderRecord) -> bool:
    if not record.reason:
        return False
    with suppress(OSError):
        file = queue_directory(farm.paths) / f"{record.id}.json"
        return time.time() - file.stat().st_mtime < _AGAIN_SECONDS
    return False


def _note(farm: Farm, record: BuilderRecord, why: str) -> bool:
    """Records why it could not be started; False if it is no longer waiting."""
    with farm.registry.edit() as records:
        current = records.get(record.id)
        if current is None or current.state != "queued":
            return False
        records[record.id] = current.with_state("queued", f"cannot be started: {why}")
    with suppress(OSError):
        (queue_directory(farm.paths) / f"{record.id}.json").touch()
    return True

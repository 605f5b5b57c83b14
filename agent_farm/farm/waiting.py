"""Builders that wait: for room under `limits.max_builders`, or for another builder's work to land.

A waiting builder is a record in state `queued`, which reserves its id and branch, and an order in
`.agent-farm/queue/<id>.json`, from which any process can start it. Its place in the registry is its place in
the queue. The order is removed once it runs; a start that is interrupted before puts it back in its place.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord, record_from_json, stored_record
from agent_farm.builders.registry import Records
from agent_farm.disk import make_directory, replace_file
from agent_farm.documents import load, store
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.listing import read_statuses
from agent_farm.own_process import start_af
from agent_farm.paths import FarmPaths

_NUDGE_SECONDS = 10.0
_FORGOTTEN = r"(.+)-(\d+)\.md"  # not compiled at start: only a clean-up needs it


class QueuedSpawn(Struct, frozen=True, forbid_unknown_fields=True):
    """`request` is the requested spawn, `directory` where it was requested.

    `issue` is the issue as read then, `record` what the queue shows.
    """

    request: dict[str, Any]
    directory: str
    prompt: str | None
    issue: dict[str, Any] | None
    record: dict[str, Any]


def queue_directory(paths: FarmPaths) -> Path:
    return paths.state / "queue"


def store_order(
    farm: Farm,
    record: BuilderRecord,
    *,
    request: dict[str, Any],
    directory: Path,
    prompt: str | None,
    issue: dict[str, Any] | None,
) -> None:
    """Written before the record: without a record, the order does not count."""
    make_directory(queue_directory(farm.paths))
    shown = stored_record(record, farm.paths)
    store(_file(farm, record.id), QueuedSpawn(request, str(directory), prompt, issue, shown))
    _write_prompt(farm, record.id, prompt)


def load_order(farm: Farm, id: str) -> QueuedSpawn:
    path = _file(farm, id)
    try:
        return load(path, QueuedSpawn)
    except FileNotFoundError:
        raise DamagedFile(f"The task of {id} is gone", why=f"There is no {path}.") from None


def forget_order(farm: Farm, id: str) -> None:
    _file(farm, id).unlink(missing_ok=True)


def requeue(farm: Farm, id: str) -> bool:
    """Put a builder whose start failed back, before all others; False if it was never waiting."""
    if not _file(farm, id).exists():
        return False
    order = load_order(farm, id)
    record = record_from_json(id, order.record, farm.paths).with_state("queued")
    _write_prompt(farm, id, order.prompt)
    with farm.registry.edit() as records:
        others = {one: kept for one, kept in records.items() if one != id}
        records.clear()
        records.update({id: record} | others)
    return True


def drop_stale_orders(farm: Farm) -> None:
    """Drop orders of builders that run by now or were never recorded; the lock keeps new ones out."""
    with farm.registry.edit() as records:
        for path in _files(farm.paths):
            record = records.get(path.stem)
            if path.stem not in records.unreadable and (
                record is None or record.state not in ("queued", "creating")
            ):
                path.unlink(missing_ok=True)


def forget_queued(farm: Farm, record: BuilderRecord) -> Path | None:
    """Take one out of the queue; returns where its prompt is kept, or None if it has just started."""
    kept = None
    with farm.registry.edit() as records:
        current = records.get(record.id)
        if current is None or current.state != "queued":
            return None
        kept = keep_prompt(farm, record.id)
        with suppress(OSError):
            farm.run(record.id).directory.rmdir()
        del records[record.id]
    drop_stale_orders(farm)  # its own, unless another builder has its id by now
    return kept


def keep_prompt(farm: Farm, id: str) -> Path:
    """The new place of a forgotten builder's prompt, if it had one."""
    kept = _forgotten(farm) / f"{id}-{time.time_ns()}.md"
    make_directory(kept.parent)
    with suppress(FileNotFoundError):
        os.rename(farm.run(id).prompt, kept)
    return kept


def expire_forgotten(farm: Farm, age: float) -> Iterator[tuple[str, int]]:
    """Delete the prompts of builders taken out of the queue that long ago; yields which, and when."""
    limit = time.time() - age
    for path in sorted(_forgotten(farm).glob("*.md")):
        name = re.fullmatch(_FORGOTTEN, path.name)
        if name and (epoch := int(name[2]) // 10**9) <= limit:
            path.unlink(missing_ok=True)
            yield name[1], epoch


def _forgotten(farm: Farm) -> Path:
    return farm.paths.state / "forgotten"


def in_order(records: Mapping[str, BuilderRecord]) -> list[BuilderRecord]:
    """All waiting builders, the first to start first."""
    return [record for record in records.values() if record.state == "queued"]


def has_room(farm: Farm, records: Records) -> bool:
    """Whether a waiting builder may start; call it under the registry's lock.

    A lost builder keeps its place, because `af recover` brings it back, and those waiting came after it.
    """
    limit = farm.settings.number("limits.max_builders")
    begun = [record for record in records.values() if record.state != "queued"]
    if not limit or len(begun) < limit:
        return True
    statuses = read_statuses(farm, begun).values()
    return sum(1 for one in statuses if not one.is_finished or one.state == "lost") < limit


def require_room(farm: Farm, records: Records, *, starting: int = 0) -> None:
    """AgentFarmError if `limits.max_builders` are running; call it under the registry's lock.

    Builders that are being created, cannot be asked about, or are `starting` count; those that ended or wait
    do not.
    """
    limit = farm.settings.number("limits.max_builders")
    if not limit or len(records) < limit:
        return
    begun = [record for record in records.values() if record.state != "queued"]
    statuses = read_statuses(farm, begun)
    running = [id for id, status in statuses.items() if not status.is_finished]
    count = len(running) + starting
    if count >= limit:
        others = len(begun) - count
        raise AgentFarmError(
            f"{count} builder{'s run' if count != 1 else ' runs'}, and limits.max_builders is {limit}",
            why=f"{others} that ended or {'was' if others == 1 else 'were'} stopped "
            f"{'does' if others == 1 else 'do'} not count."
            if others
            else None,
            hint=f"af stop {running[0]}" if count == len(running) == 1 else "af status",
        )


def start_later(farm: Farm) -> None:
    """Have another process start queued builders, without waiting for it."""
    if not any(_files(farm.paths)):
        return
    mark_looked(farm)
    start_af(farm.root, "queue")


def nudge(farm: Farm) -> None:
    """`start_later` for every other command, unless the queue was checked just before."""
    with suppress(OSError):
        if time.time() - lock_path(farm.paths).stat().st_mtime < _NUDGE_SECONDS:
            return
    start_later(farm)


def nudge_at(root: Path) -> None:
    """For the server, which has no farm open."""
    if any(_files(FarmPaths(root))):
        nudge(open_farm(root))


def lock_path(paths: FarmPaths) -> Path:
    """Held by the process that starts waiting builders; its time says when the queue was last checked."""
    return paths.locks / "queue.lock"


def mark_looked(farm: Farm) -> None:
    with suppress(OSError):
        make_directory(farm.paths.locks)
        lock_path(farm.paths).touch(mode=0o600)


def _write_prompt(farm: Farm, id: str, prompt: str | None) -> None:
    if prompt is not None:
        run = farm.run(id)
        make_directory(run.directory)
        replace_file(run.prompt, prompt)


def _file(farm: Farm, id: str) -> Path:
    return queue_directory(farm.paths) / f"{farm.paths.run(id).name}.json"


def _files(paths: FarmPaths) -> Iterator[Path]:
    return queue_directory(paths).glob("[!.]*.json")

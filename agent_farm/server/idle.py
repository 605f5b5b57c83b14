"""Tells when nobody needs the farm's server, so that it may end itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.listing import read_statuses
from agent_farm.sessions.running_butlers import RunningButlers
from agent_farm.settings import load_settings


@dataclass(slots=True)
class Activity:
    """When the last request came, and how many are still being answered.

    An open page, a stream and a long tool call are requests that have not ended.
    """

    clock: Callable[[], float] = time.monotonic
    _open: int = 0
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    @contextmanager
    def request(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._last = self.clock()

    @property
    def quiet_seconds(self) -> float:
        return 0.0 if self._open else self.clock() - self._last


def idle_limit(root: Path) -> float | None:
    """After how many quiet seconds the server ends; None if it stays."""
    return float(load_settings(root).number("server.idle_seconds")) or None


def is_idle(butlers: RunningButlers, activity: Activity) -> bool:
    """Whether it was quiet for that long, no page is open, and nothing is running, waiting or may become due.

    Blocks. If something cannot be read, the server counts as needed.
    """
    try:
        limit = idle_limit(butlers.root)
        if limit is None or activity.quiet_seconds < limit or butlers.has_work():
            return False
        return not _has_builders(butlers.root) and activity.quiet_seconds >= limit
    except (AgentFarmError, OSError):
        return False


def _has_builders(root: Path) -> bool:
    farm = open_farm(root)
    records = list(farm.records().values())
    if any(record.state == "creating" for record in records):
        return True
    if any(not status.is_finished for status in read_statuses(farm, records).values()):
        return True
    return _has_builders_elsewhere(farm)


def _has_builders_elsewhere(farm: Farm) -> bool:
    """Whether builders elsewhere still have work to come home, or may have to be placed again."""
    if not farm.paths.fleet.exists():
        return False
    from agent_farm.fleet.book import read_book

    kept = (one for one in read_book(farm).builders.values() if not one.gone)
    return any(one.row is None or not one.row.status.is_finished for one in kept)

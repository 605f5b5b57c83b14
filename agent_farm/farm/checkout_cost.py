"""Measures what a checkout costs, and decides from that whether to keep worktrees ready unasked: the pool.

The last few are remembered. The cheapest one counts, and only if it took processor time: checkouts are not
slow just because the machine is busy with something else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct

from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.own_process import start_af

T = TypeVar("T")

POOL = ".pool"
DEAR_SECONDS = 0.3
_DEAR_PROCESSOR_SECONDS = 0.1
_REMEMBERED = 3
_SLOTS = 2
_MOST_BYTES = 5_000_000_000
_MOST_OF_FREE = 0.1
MOST_TOLD = "5 GB and a tenth of the free disk"


class Pool(Struct, frozen=True):
    """How many worktrees should be ready, and why."""

    size: int
    reason: str


def pool_of(farm: Farm) -> Pool:
    size = farm.settings.number("pool.size")
    if size:
        return Pool(size, f"pool.size is {size}")
    if not farm.settings.flag("pool.auto"):
        return Pool(0, "pool.auto is off")
    known = _load(_file(farm))
    if not known:
        return Pool(0, f"no checkout has taken {DEAR_SECONDS} s yet")
    seconds, processor = min(known)
    told = f"a checkout takes {seconds:.2f} s"
    if not _is_dear((seconds, processor)):
        return Pool(0, f"{told}; from {DEAR_SECONDS} s on, keeping some ready pays")
    return Pool(_SLOTS, told)


def pool_directory(farm: Farm) -> Path:
    return farm.paths.worktrees / POOL


def refill_later(farm: Farm) -> None:
    """Have another process fill the pool, without waiting for it."""
    if pool_of(farm).size or pool_directory(farm).is_dir():
        start_af(farm.root, "pool", "fill")


def affordable(farm: Farm, bytes_each: int) -> int:
    """How many worktrees of that size may be kept ready unasked."""
    free = os.statvfs(farm.root)
    bound = min(_MOST_BYTES, _MOST_OF_FREE * free.f_bavail * free.f_frsize)
    return int(bound // max(1, bytes_each))


class Timed(Generic[T]):
    """A call, and how long it took."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.seconds = 0.0
        self._call = call

    def __call__(self) -> T:
        begin = time.monotonic()
        result = self._call()
        self.seconds = time.monotonic() - begin
        return result


@contextmanager
def measured(farm: Farm, beside: Timed[Any] | None = None) -> Iterator[None]:
    """Remember the cost of the block: a checkout, with the processes that it waits for.

    What was done `beside` it is taken off, since git may have waited for that, but never what a processor
    was busy with.
    """
    begin, before = time.monotonic(), _processor_seconds()
    yield
    busy, elapsed = _processor_seconds() - before, time.monotonic() - begin
    seconds = max(min(busy, elapsed), elapsed - (beside.seconds if beside else 0))
    cost = (round(seconds, 4), round(busy, 4))
    known = [*_load(_file(farm)), cost][-_REMEMBERED:]
    if not any(map(_is_dear, known)):
        return  # a small repository's spawns write nothing
    with suppress(AgentFarmError):  # on a full or read-only disk, spawning works without it
        store(_file(farm), _Costs(known))


def _is_dear(cost: tuple[float, float]) -> bool:
    return cost[0] > DEAR_SECONDS and cost[1] > _DEAR_PROCESSOR_SECONDS


def _processor_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _file(farm: Farm) -> Path:
    return farm.paths.state / "checkouts.json"


class _Costs(Struct, frozen=True):
    """For each checkout: seconds, and how many of these a processor was busy."""

    checkouts: list[tuple[float, float]]


def _load(file: Path) -> list[tuple[float, float]]:
    known = load_if_whole(file, _Costs)
    return known.checkouts if known else []

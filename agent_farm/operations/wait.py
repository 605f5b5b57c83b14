"""`wait`: wait until builders reach a state, or can no longer reach it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.status import State, Status
from agent_farm.errors import AgentFarmError, TimedOut
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders, read_statuses
from agent_farm.farm.panes import find_panes
from agent_farm.operations.builders import SomeBuilders, choose_all
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.operations.shown import BuilderShown, show_all

DEFAULT_STATES: tuple[State, ...] = ("idle", "waiting", "exited", "stopped")
# Files tell what runtimes report; only tmux, which takes a process to ask, tells that a session is gone.
_LOOK_SECONDS = 0.01
_ASK_SECONDS = 0.5
_MOST_LOOKED_AT = 50
_TMUX_SECONDS = 2.0  # a busy machine needs as long to answer, whatever the timeout
# States that change only if somebody does something.
_ENDINGS = {
    "exited": "has exited",
    "failed": "failed",
    "stopped": "is stopped",
    "lost": "is lost",
    "interrupted": "was interrupted",
}


class Wait(Request):
    ids: SomeBuilders
    states: Annotated[
        tuple[State, ...], Meta(description="States to wait for; default: idle, waiting or ended")
    ] = DEFAULT_STATES
    any_is_enough: Annotated[bool, Meta(description="Return as soon as one of them gets there")] = False
    timeout: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Give up after this many seconds; a program's default is 60, its limit 600"),
    ] = None


class Waited(Answer):
    builders: tuple[BuilderShown, ...]


@reads(
    "Wait until builders are idle, waiting for a person, or ended",
    pool="wait",
    waits=True,
    details="If a builder fails or vanishes, the wait ends at once with an error.",
    elsewhere="there",
)
def wait(context: Context, request: Wait) -> Waited:
    ids = [record.id for record in choose_all(context, request.ids)]
    wanted = request.states or DEFAULT_STATES
    _wait(context.farm, ids, wanted, any_is_enough=request.any_is_enough, timeout=request.timeout)
    return Waited(show_all(list_builders(context.farm, ids, with_git=False)))


def _wait(
    farm: Farm, ids: Sequence[str], wanted: Collection[str], *, any_is_enough: bool, timeout: float | None
) -> None:
    """Return once all (or one) are in a wanted state.

    Raises at once for a builder that ended, failed or vanished in a state that is not wanted.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        looked = _look(farm, ids)
        left = None if deadline is None else max(_TMUX_SECONDS, deadline - time.monotonic())
        statuses = _statuses(farm, ids, left)
        there = [id for id, status in statuses.items() if status.state in wanted]
        _require_hope(statuses, wanted)
        if len(there) == len(ids) or (any_is_enough and there):
            return
        if timeout is not None and deadline is not None and time.monotonic() >= deadline:
            missing = [f"{id}: {status.state}" for id, status in statuses.items() if id not in there]
            raise TimedOut(f"Not {_listed(wanted)} after {timeout:g} s", evidence=missing)
        _wait_for_change(farm, ids, looked, deadline)


def _look(farm: Farm, ids: Sequence[str]) -> list[tuple[int, int] | None]:
    """What changes whenever the files do by which a builder's state is judged."""
    files = [farm.paths.registry, *(file for id in ids for file in (farm.run(id).events, farm.run(id).exit))]
    return [_time_and_size(file) for file in files]


def _time_and_size(file: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _wait_for_change(farm: Farm, ids: Sequence[str], looked: object, deadline: float | None) -> None:
    """Until the files change, or it is time to ask tmux again."""
    until = min(time.monotonic() + _ASK_SECONDS, deadline or math.inf)
    pause = _LOOK_SECONDS if len(ids) <= _MOST_LOOKED_AT else _ASK_SECONDS / 4
    while time.monotonic() < until and _look(farm, ids) == looked:
        time.sleep(pause)


def _statuses(farm: Farm, ids: Sequence[str], seconds: float | None) -> dict[str, Status]:
    records = farm.records()
    gone = [id for id in ids if id not in records]
    if gone:
        raise AgentFarmError(f"{gone[0]} is gone", why="It was removed while waiting.", hint="af status")
    chosen = [records[id] for id in ids]
    return read_statuses(farm, chosen, find_panes(chosen, seconds=seconds))


def _require_hope(statuses: dict[str, Status], wanted: Collection[str]) -> None:
    for id, status in statuses.items():
        if status.state in _ENDINGS and status.state not in wanted:
            why = status.reason or f"It will not become {_listed(wanted)}."
            hint = f'af send {id} "Go on"' if status.state == "interrupted" else f"af logs {id}"
            raise AgentFarmError(f"{id} {_ENDINGS[status.state]}", why=why, hint=hint)


def _listed(states: Collection[str]) -> str:
    return " or ".join(sorted(states))

"""`af wait`: until builders are in a state, or cannot come to it any more."""

from __future__ import annotations

import time
from collections.abc import Sequence

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import STATES, Status
from agent_farm.errors import AgentFarmError, TimedOut, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.panes import find_panes

DEFAULT_STATES = frozenset({"idle", "waiting", "exited", "stopped"})
_POLL_SECONDS = 0.1
_TMUX_SECONDS = 2.0  # a busy machine needs that much to answer, whatever --timeout says


def parse_states(text: str | None) -> frozenset[str]:
    if text is None:
        return DEFAULT_STATES
    wanted = frozenset(word.strip() for word in text.split(","))
    unknown = sorted(wanted - set(STATES))
    if unknown:
        raise UsageError(
            f"--for: no state {unknown[0]}", why=f"States are: {', '.join(STATES)}", hint="af wait --help"
        )
    return wanted


def wait(
    farm: Farm,
    ids: Sequence[str],
    wanted: frozenset[str],
    *,
    any_is_enough: bool = False,
    timeout: float | None = None,
) -> dict[str, Status]:
    """The statuses once all (or one) are in a wanted state.

    A builder that ended, failed or vanished in a state that is not wanted raises at once.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = None if deadline is None else max(_TMUX_SECONDS, deadline - time.monotonic())
        statuses = _statuses(farm, ids, left)
        there = [id for id, status in statuses.items() if status.state in wanted]
        _require_hope(statuses, wanted)
        if len(there) == len(ids) or (any_is_enough and there):
            return statuses
        if deadline is not None and time.monotonic() >= deadline:
            missing = [f"{id}: {status.state}" for id, status in statuses.items() if id not in there]
            raise TimedOut(f"Not {' or '.join(sorted(wanted))} after {timeout:g} s", evidence=missing)
        time.sleep(_POLL_SECONDS)


def _statuses(farm: Farm, ids: Sequence[str], seconds: float | None) -> dict[str, Status]:
    records = farm.records()
    gone = [id for id in ids if id not in records]
    if gone:
        raise AgentFarmError(f"{gone[0]} is gone", why="It was removed while waiting.", hint="af status")
    chosen: list[BuilderRecord] = [records[id] for id in ids]
    return read_statuses(farm, chosen, find_panes(chosen, seconds=seconds))


def _require_hope(statuses: dict[str, Status], wanted: frozenset[str]) -> None:
    for id, status in statuses.items():
        if status.state in _ENDINGS and status.state not in wanted:
            why = status.reason or f"It will not be {' or '.join(sorted(wanted))}."
            hint = f'af send {id} "Go on"' if status.state == "interrupted" else f"af logs {id}"
            raise AgentFarmError(f"{id} {_ENDINGS[status.state]}", why=why, hint=hint)


# States that change only when somebody does something.
_ENDINGS = {
    "exited": "has exited",
    "failed": "failed",
    "stopped": "is stopped",
    "lost": "is lost",
    "interrupted": "was interrupted",
}

"""Whether the clock can be trusted for deleting by age.

A clock that jumped (an empty battery, a restored virtual machine, a mistyped year) looks like time that
has passed; the only difference is that nobody was there meanwhile. So whatever deletes by age records when
it last looked. When the clock is far ahead of that, nothing is deleted until somebody could have noticed.
"""

from __future__ import annotations

import time
from contextlib import suppress

from msgspec import Struct

from agent_farm.disk import file_lock
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError
from agent_farm.paths import FarmPaths

JUMP_SECONDS = 30 * 86400.0
STANDS_SECONDS = 7 * 86400.0
_WRITTEN_EVERY = 3600.0


class ClockJumped(AgentFarmError):
    code = "clock-jumped"


class _Look(Struct, frozen=True):
    """`jumped` is when a jump was noticed that is too recent to be accepted."""

    seen: float
    jumped: float | None = None


def note_time(paths: FarmPaths) -> None:
    """Called by whatever creates files that are later deleted by age."""
    _look(paths)


def require_steady_clock(paths: FarmPaths, *, asked: bool) -> None:
    """Raises ClockJumped: once if a person `asked`, else until the jump counts as accepted."""
    look, ahead = _look(paths)
    if not ahead and (asked or look.jumped is None):
        return
    days = f"{STANDS_SECONDS / 86400:g} days"
    raise ClockJumped(
        "Nothing is deleted by its age: the clock may be wrong",
        why=f"It jumped ahead by {ahead / 86400:.0f} days since af last looked."
        if ahead
        else f"It jumped ahead. If it is not set back, af accepts it after {days}.",
        hint="date; if it is right, repeat the command" if asked else "date",
    )


def _look(paths: FarmPaths) -> tuple[_Look, float]:
    """What is recorded from now on, and by how many seconds the clock has just jumped ahead."""
    if not paths.state.is_dir():  # no farm yet: nothing is old, and git would not ignore our file
        return _Look(time.time()), 0.0
    with file_lock(paths.locks / "clock.lock"):
        return _compared(paths, time.time())


def _compared(paths: FarmPaths, now: float) -> tuple[_Look, float]:
    found = load_if_whole(paths.clock, _Look)
    before = found or _Look(now)
    ahead = now - before.seen if now - before.seen > JUMP_SECONDS else 0.0
    jumped = now if ahead else before.jumped
    if jumped is not None and not 0 <= now - jumped < STANDS_SECONDS:
        jumped = None
    look = _Look(now, jumped)
    if found is None or jumped != before.jumped or abs(now - before.seen) > _WRITTEN_EVERY:
        with suppress(AgentFarmError):  # a disk that is full is a reason to delete
            store(paths.clock, look)
    return look, ahead

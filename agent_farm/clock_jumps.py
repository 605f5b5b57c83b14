"""Whether the clock can be trusted for deleting by age.

Nothing tells a clock that jumped (an empty battery, a virtual machine that was restored, a year that was
mistyped) from time that has passed, but that nobody was there meanwhile. So whoever deletes by age leaves
behind when it looked, and goes by no clock that is far ahead of that until somebody could notice.
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
    """`jumped` is when a jump was noticed that has not stood for long enough since."""

    seen: float
    jumped: float | None = None


def note_time(paths: FarmPaths) -> None:
    """For what makes something that gets old."""
    _look(paths)


def require_steady_clock(paths: FarmPaths, *, asked: bool) -> None:
    """ClockJumped for somebody who asked, once; for what deletes by itself as long as it may be a mistake."""
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
    """As it is on record from now on, and by how many seconds the clock jumped ahead just now."""
    if not paths.state.is_dir():  # no farm yet: nothing is old, and nothing keeps a file of ours out of git
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

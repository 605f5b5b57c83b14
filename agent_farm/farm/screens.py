"""What no hook tells: a turn that was interrupted, an error on the screen.

The screen only corrects a `working` that is stale; it ends nothing, and the status says where it is from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.panes import Found
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import ScreenPatterns
from agent_farm.tmux.screen import ScreenRules, plain, read_screen
from agent_farm.tmux.server import TmuxServer

# A CLI at work writes to its pane all the time, if only to turn a spinner.
STALE_SECONDS = 4.0


def is_stale(status: Status, found: Found, now: float) -> bool:
    """Nothing was reported and nothing was drawn for a while, although a turn is said to run."""
    if status.state != "working" or found.pane is None or found.pane.dead:
        return False
    return now - max(status.at or now, found.pane.activity) >= STALE_SECONDS


def correct_stale(
    farm: Farm, records: Collection[BuilderRecord], found: Mapping[str, Found], now: float
) -> dict[str, Status]:
    """The states of these builders as their screens show them; those that show nothing else are left out."""
    corrected = {}
    for id, captured in _screens(records, found).items():
        record = next(record for record in records if record.id == id)
        patterns = get_adapter(record.runtime, farm.root).screen
        status = _status(captured, patterns, now)
        if status is not None:
            corrected[id] = status
    return corrected


def label_screen(captured: str, patterns: ScreenPatterns) -> tuple[str, str | None]:
    """dialog, draft, working, failed, ready or unknown, and the line that says so.

    A turn that runs shows an input line, too; so does one that ended with an error.
    """
    reading = read_screen(captured, ScreenRules(patterns.ready, patterns.draft, patterns.dialog))
    text = plain(captured)
    if reading.dialog is not None:
        return "dialog", reading.dialog
    if reading.draft is not None:
        return "draft", reading.draft
    if patterns.working and re.search(patterns.working, text, re.MULTILINE):
        return "working", None
    error = re.search(patterns.failed, text, re.MULTILINE) if patterns.failed else None
    if error:
        return "failed", " ".join(error[0].split())
    return ("ready" if reading.ready else "unknown"), None


def _status(captured: str, patterns: ScreenPatterns, now: float) -> Status | None:
    label, line = label_screen(captured, patterns)
    if label in ("dialog", "failed"):
        return Status("waiting", "screen", now, reason=line)
    if label in ("ready", "draft"):
        return Status("idle", "screen", now)
    return None


def _screens(records: Collection[BuilderRecord], found: Mapping[str, Found]) -> dict[str, str]:
    """One call for each tmux server."""
    panes: dict[TmuxServer, dict[str, str]] = {}
    for record in records:
        pane = found[record.id].pane
        if pane is not None:
            panes.setdefault(found[record.id].server, {})[pane.pane_id] = record.id
    screens: dict[str, str] = {}
    for server, ids in panes.items():
        try:
            captured = server.capture_many(list(ids), escapes=True)
        except AgentFarmError:  # then what was reported last stands
            continue
        screens |= {ids[pane]: text for pane, text in captured.items()}
    return screens

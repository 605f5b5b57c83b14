"""What no hook tells: a turn that was interrupted, an error on the screen.

The screen only corrects a state that nothing reports the end of: a turn that is said to run, a dialog that
is said to be open. It ends nothing, and the status says where it is from.
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
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Screen
from agent_farm.tmux.screen import ScreenRules, last_match, plain, read_screen
from agent_farm.tmux.server import TmuxServer

# A CLI at work writes to its pane all the time, if only to turn a spinner.
STALE_SECONDS = 4.0


def may_be_stale(status: Status, found: Found, now: float) -> bool:
    """A turn is said to run, or a hook told of a dialog, and nothing was reported for a while."""
    if found.pane is None or found.pane.dead or now - (status.at or now) < STALE_SECONDS:
        return False
    return status.state == "working" or (status.state == "waiting" and status.source == "hook")


def correct_stale(
    farm: Farm,
    records: Collection[BuilderRecord],
    statuses: Mapping[str, Status],
    found: Mapping[str, Found],
    now: float,
) -> dict[str, Status]:
    """The states of these builders as their screens show them; those that show nothing else are left out."""
    patterns = {}
    for record in records:
        adapter = _adapter(farm, record.runtime)
        if adapter is not None and _can_be_read(adapter, statuses[record.id]):
            patterns[record.id] = adapter.cli.screen
    screens = _screens([record for record in records if record.id in patterns], found)
    read = {
        id: _status(captured, patterns[id], statuses[id], now)
        for id, captured in screens.items()
        if patterns[id].shows_work or _is_still(found[id], statuses[id], now)
    }
    return {id: status for id, status in read.items() if status is not None}


def _is_still(found: Found, status: Status, now: float) -> bool:
    """Nothing was drawn for a while, either; whoever waits draws what it likes."""
    return status.state == "waiting" or found.pane is None or now - found.pane.activity >= STALE_SECONDS


def _adapter(farm: Farm, runtime: str) -> RuntimeAdapter | None:
    try:
        return get_adapter(runtime, farm.root)
    except (ValueError, AgentFarmError):  # agent_runtime.json no longer declares it, or is damaged
        return None


def _can_be_read(adapter: RuntimeAdapter, status: Status) -> bool:
    """Whoever waits for something else goes on waiting, whatever the screen shows."""
    return status.state == "working" or status.event in adapter.cli.hooks.unsure


def label_screen(captured: str, patterns: Screen) -> tuple[str, str | None]:
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
    error = last_match(patterns.failed, text)
    ended = last_match(patterns.interrupted, text)
    if error and (ended is None or ended.start() < error.start()):
        return "failed", " ".join(error[0].split())
    return ("ready" if reading.ready else "unknown"), None


def _status(captured: str, patterns: Screen, reported: Status, now: float) -> Status | None:
    label, line = label_screen(captured, patterns)
    if label == "dialog" and reported.state == "waiting":
        return None
    if label in ("dialog", "failed"):
        return Status("waiting", "screen", now, reason=line)
    if label == "working" and reported.state == "waiting":
        return Status("working", "screen", now)
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

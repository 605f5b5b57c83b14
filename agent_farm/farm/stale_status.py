"""Corrects states that no hook reports: an interrupted turn, an error on the screen.

The screen only corrects a state whose end nothing reports: a turn that is said to run, a dialog that is said
to be open. Nothing is ended because of it, and the status says where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.panes import STALE_SECONDS, Found
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Cli, Screen
from agent_farm.tmux.screen import ScreenRules, last_match, plain, read_screen
from agent_farm.tmux.server import TmuxServer
from agent_farm.usage_limits import limit_in

_LONGEST = 300


def correct_stale(
    farm: Farm,
    records: Collection[BuilderRecord],
    statuses: Mapping[str, Status],
    found: Mapping[str, Found],
    now: float,
) -> dict[str, Status]:
    """The states of these builders according to their screens; unchanged ones are left out."""
    clis = {}
    for record in records:
        adapter = _adapter(farm, record.runtime)
        if adapter is not None and _can_be_read(adapter, statuses[record.id]):
            clis[record.id] = adapter.cli
    screens = _screens([record for record in records if record.id in clis], found)
    read = {
        id: _status(captured, clis[id], statuses[id], now)
        for id, captured in screens.items()
        if clis[id].screen.shows_work or _is_still(found[id], statuses[id], now)
    }
    return {id: status for id, status in read.items() if status is not None}


def _is_still(found: Found, status: Status, now: float) -> bool:
    """Whether nothing was drawn for a while, either; a waiting builder may draw anything."""
    return status.state == "waiting" or found.pane is None or now - found.pane.activity >= STALE_SECONDS


def _adapter(farm: Farm, runtime: str) -> RuntimeAdapter | None:
    try:
        return get_adapter(runtime, farm.root)
    except (ValueError, AgentFarmError):  # agent_runtime.json no longer declares it, or is damaged
        return None


def _can_be_read(adapter: RuntimeAdapter, status: Status) -> bool:
    """A builder that waits for something else is still waiting, whatever the screen shows."""
    return status.state == "working" or status.event in adapter.cli.hooks.unsure


def label_screen(captured: str, patterns: Screen) -> tuple[str, str | None]:
    """dialog, draft, working, failed, ready or unknown, and the line that shows it.

    A running turn also shows an input line, and so does one that ended with an error.
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
        return "failed", _paragraph(text, error.start())
    return ("ready" if reading.ready else "unknown"), None


def _paragraph(text: str, begin: int) -> str:
    """A message continues on further lines, up to an empty one."""
    return " ".join(text[begin:].partition("\n\n")[0].split())[:_LONGEST]


def _status(captured: str, cli: Cli, reported: Status, now: float) -> Status | None:
    label, line = label_screen(captured, cli.screen)
    limit = limit_in(line, cli.limited) if label == "failed" and line else None
    if limit:
        return Status("limited", "screen", now, reason=limit)
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
        except AgentFarmError:  # the last report then stands
            continue
        screens |= {ids[pane]: text for pane, text in captured.items()}
    return screens

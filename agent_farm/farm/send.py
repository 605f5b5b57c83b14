"""`af send`: "sent" means submitted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.errors import UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.history import note
from agent_farm.farm.listing import read_status
from agent_farm.farm.panes import find_pane
from agent_farm.processes import load_runtime_pid
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.plain_text import as_text
from agent_farm.tmux.delivery import Delivery, require_deliverable
from agent_farm.tmux.screen import ScreenRules


def send(farm: Farm, record: BuilderRecord, text: str) -> Delivery:
    """Deliver `text` to the builder's runtime; where it was held, nothing was typed."""
    require_deliverable(text)
    held = _cannot_take(read_status(farm, record))
    if held:
        return Delivery("held", held)
    found = find_pane(record)
    pane = found.pane
    if pane is None:
        return Delivery("held", "its tmux session is gone")
    adapter = _adapter(farm, record)
    patterns = adapter.screen
    events, event = farm.run(record.id).events, adapter.submit_event
    delivery = found.server.deliver(
        pane.pane_id,
        as_text(text, adapter.own_words),
        lock=farm.paths.delivery_lock(record.id),
        screen=ScreenRules(ready=patterns.ready, draft=patterns.draft, dialog=patterns.dialog),
        watch=(lambda: _Reports.from_now(events, record.run, event).has_come) if event else None,
        runtime_pid=load_runtime_pid(farm.run(record.id).processes, record.run),
    )
    if delivery.outcome != "held":
        note(farm, record, "sent", f"{delivery.outcome}, {len(text.encode())} bytes")
    return delivery


def press(farm: Farm, record: BuilderRecord, keys: Sequence[str]) -> Delivery:
    """Press keys of `tmux.keys.parse_keys` in the builder's runtime, a dialog open or not."""
    held = _cannot_take(read_status(farm, record))
    if held:
        return Delivery("held", held)
    found = find_pane(record)
    if found.pane is None:
        return Delivery("held", "its tmux session is gone")
    delivery = found.server.press(
        found.pane.pane_id,
        keys,
        lock=farm.paths.delivery_lock(record.id),
        runtime_pid=load_runtime_pid(farm.run(record.id).processes, record.run),
    )
    if delivery.outcome != "held":
        note(farm, record, "keys", f"{delivery.outcome}: {delivery.reason}")
    return delivery


def _adapter(farm: Farm, record: BuilderRecord) -> RuntimeAdapter:
    try:
        return get_adapter(record.runtime, farm.root)
    except ValueError as error:
        raise UsageError(
            f"{record.runtime}, the runtime of {record.id}, is not declared any more",
            why=str(error),
            hint="$EDITOR agent_runtime.json",
        ) from error


def _cannot_take(status: Status) -> str | None:
    """Why nobody would read the message, or None."""
    if status.is_finished:
        return f"its runtime has ended ({status.state})"
    if status.state in ("creating", "preparing"):
        return f"its runtime has not started yet ({status.state})"
    return None


@dataclass(frozen=True, slots=True)
class _Reports:
    """The events that come after a moment, read from where the file ended then."""

    file: Path
    offset: int
    run: str
    event: str

    @classmethod
    def from_now(cls, file: Path, run: str, event: str) -> _Reports:
        return cls(file, os.path.getsize(file) if file.exists() else 0, run, event)

    def has_come(self) -> bool:
        with open(self.file, "rb") as file:
            file.seek(self.offset)
            for line in file:
                try:
                    document = json.loads(line)
                    if (document["run"], document["event"]) == (self.run, self.event):
                        return True
                except (ValueError, KeyError, TypeError, RecursionError):  # being written, or no event
                    continue
        return False

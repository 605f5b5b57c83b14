"""`af send`: "sent" means submitted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_farm.builders.events import read_report
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.own_events import note
from agent_farm.farm.panes import Found, find_panes
from agent_farm.pane.journal import digest_of_prompt
from agent_farm.processes import load_runtime_pid
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.plain_text import as_text
from agent_farm.tmux.delivery import Delivery, Hesitate, Watch, require_deliverable
from agent_farm.tmux.screen import ScreenRules

# From the hook that tells of a dialog until the CLI has drawn it.
_DIALOG_SECONDS = 2.0
_AT_ONCE = 8


def send(farm: Farm, record: BuilderRecord, text: str) -> Delivery:
    """Deliver `text` to the builder's runtime; where it was held, nothing was typed."""
    return dict(send_all(farm, [record], text))[record.id]


def send_all(farm: Farm, records: Collection[BuilderRecord], text: str) -> Iterator[tuple[str, Delivery]]:
    """The same text to several, at once; what came of each, as it comes."""
    require_deliverable(text)
    return _each(farm, records, lambda record, found: _deliver(farm, record, found, text))


def press(farm: Farm, record: BuilderRecord, keys: Sequence[str]) -> Delivery:
    """Press keys of `tmux.keys.parse_keys` in the builder's runtime, a dialog open or not."""
    return dict(press_all(farm, [record], keys))[record.id]


def press_all(
    farm: Farm, records: Collection[BuilderRecord], keys: Sequence[str]
) -> Iterator[tuple[str, Delivery]]:
    return _each(farm, records, lambda record, found: _press(farm, record, found, keys))


def _each(
    farm: Farm, records: Collection[BuilderRecord], act: Callable[[BuilderRecord, Found], Delivery]
) -> Iterator[tuple[str, Delivery]]:
    found = find_panes(records)
    statuses = read_statuses(farm, records, found)
    able = []
    for record in records:
        held = _cannot_take(record, statuses[record.id], found[record.id])
        if held:
            yield record.id, held
        else:
            able.append(record)
    if len(able) < 2:  # a thread would not see Ctrl-C
        yield from ((record.id, _tell(record, act, found[record.id])) for record in able)
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        running = {threads.submit(_tell, record, act, found[record.id]): record.id for record in able}
        yield from ((running[done], done.result()) for done in as_completed(running))


def _tell(record: BuilderRecord, act: Callable[[BuilderRecord, Found], Delivery], found: Found) -> Delivery:
    """What goes wrong with one says nothing of the others."""
    try:
        return act(record, found)
    except (AgentFarmError, OSError) as error:
        why = f": {error.why}" if isinstance(error, AgentFarmError) and error.why else ""
        return Delivery("failed", f"{error}{why}")


def _deliver(farm: Farm, record: BuilderRecord, found: Found, text: str) -> Delivery:
    assert found.pane is not None
    try:
        adapter = get_adapter(record.runtime, farm.root)
    except ValueError as error:
        reason = f"{record.runtime}, its runtime, is not declared any more: {error}"
        return Delivery("held", reason, hints=("$EDITOR agent_runtime.json",))
    typed, patterns = as_text(text, adapter.cli.own_words), adapter.cli.screen
    delivery = found.server.deliver(
        found.pane.pane_id,
        typed,
        lock=farm.paths.delivery_lock(record.id),
        screen=ScreenRules(ready=patterns.ready, draft=patterns.draft, dialog=patterns.dialog),
        watch=_watch(farm, record, adapter, typed) if adapter.cli.hooks.submitted else None,
        hesitate=_hesitation(farm, record, adapter),
        runtime_pid=load_runtime_pid(farm.run(record.id).processes, record.run),
    )
    if delivery.outcome != "held":
        note(farm, record, "sent", f"{delivery.outcome}, {len(text.encode())} bytes")
    return replace(delivery, hints=_hints(record, delivery))


def _press(farm: Farm, record: BuilderRecord, found: Found, keys: Sequence[str]) -> Delivery:
    assert found.pane is not None
    delivery = found.server.press(
        found.pane.pane_id,
        keys,
        lock=farm.paths.delivery_lock(record.id),
        runtime_pid=load_runtime_pid(farm.run(record.id).processes, record.run),
    )
    if delivery.outcome != "held":
        note(farm, record, "keys", f"{delivery.outcome}: {delivery.reason}")
    return delivery


def _hints(record: BuilderRecord, delivery: Delivery) -> tuple[str, ...]:
    if delivery.held_by is None:
        return ()
    attach = f"af attach {record.id}"
    return (attach, f"af send {record.id} --keys Enter") if delivery.held_by == "dialog" else (attach,)


def _cannot_take(record: BuilderRecord, status: Status, found: Found) -> Delivery | None:
    """Why nobody would read the message, or None. What could not be asked is not gone."""
    if status.is_finished:
        again = "af recover" if status.state == "lost" else f"af resume {record.id}"
        return Delivery("held", f"its runtime has ended ({status.state})", hints=(again,))
    if status.state in ("creating", "preparing"):
        reason = f"its runtime has not started yet ({status.state})"
        return Delivery("held", reason, hints=(f"af wait {record.id}",))
    if not found.known:
        return Delivery("held", f"tmux could not be asked: {found.reason}", hints=("af doctor",))
    if found.pane is None:
        return Delivery("held", status.reason or "it has no tmux session", hints=("af doctor",))
    return None


def _watch(farm: Farm, record: BuilderRecord, adapter: RuntimeAdapter, typed: str) -> Watch:
    events, digest = farm.run(record.id).events, digest_of_prompt(typed)
    return lambda: _Reports.from_now(events, record.run, adapter.cli.hooks.submitted, digest).has_come


def _hesitation(farm: Farm, record: BuilderRecord, adapter: RuntimeAdapter) -> Hesitate:
    """A CLI puts its first prompt into the line itself; a dialog is told of before it is drawn."""
    run = farm.run(record.id)
    prompted = _begins_with_a_prompt(run.launch)

    def reason() -> str | None:
        newest = read_report(run.events, record.run).state
        if prompted and (newest is None or newest.source == "launcher"):
            return "it has not taken its first prompt yet"
        if newest is not None and newest.state == "waiting" and newest.event in adapter.cli.hooks.unsure:
            return "a dialog is opening" if time.time() - newest.at < _DIALOG_SECONDS else None
        return None

    return reason


def _begins_with_a_prompt(launch: Path) -> bool:
    try:
        return bool(json.loads(launch.read_bytes()).get("prompted"))
    except (OSError, ValueError, AttributeError):
        return False


@dataclass(frozen=True, slots=True)
class _Reports:
    """The events that come after a moment, read from where the file ended then."""

    file: Path
    offset: int
    run: str
    event: str
    said: str

    @classmethod
    def from_now(cls, file: Path, run: str, event: str, said: str) -> _Reports:
        return cls(file, os.path.getsize(file) if file.exists() else 0, run, event, said)

    def has_come(self) -> bool:
        """An event of this very text: another one may be submitted meanwhile."""
        wanted = (self.run, self.event, self.said)
        with open(self.file, "rb") as file:
            file.seek(self.offset)
            for line in file:
                try:
                    document = json.loads(line)
                    if (document["run"], document["event"], document["detail"]["said"]) == wanted:
                        return True
                except (ValueError, KeyError, TypeError, RecursionError):  # being written, or no event
                    continue
        return False

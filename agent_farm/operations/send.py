"""`send`, `send_keys`, `message_builder`: type text and keys for running builders; "sent" means submitted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta

from agent_farm.builders.events import read_report
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.errors import AgentFarmError, DamagedFile, NotDelivered
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.message_door import pass_in
from agent_farm.farm.own_events import note
from agent_farm.farm.panes import Found, find_panes
from agent_farm.farm.submissions import has_come
from agent_farm.operations.builders import BuilderId, SomeBuilders, choose, choose_all
from agent_farm.operations.declare import acts, in_parts
from agent_farm.operations.operation import Answer, Context, Request, gathered
from agent_farm.own_files import read_own
from agent_farm.pane.journal import digest_of_prompt
from agent_farm.processes import load_runtime_pid
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.plain_text import as_text
from agent_farm.tmux.deliverable import Delivery, require_deliverable
from agent_farm.tmux.delivery import Hesitate, Watch, deliver
from agent_farm.tmux.keys import NAMED, parse_keys, press
from agent_farm.tmux.screen import ScreenRules

# The time from the hook that reports a dialog until the CLI has drawn it.
_DIALOG_SECONDS = 2.0
_AT_ONCE = 8

Message = Annotated[str, Meta(description="The message; tab and newline are its only control characters")]


class Delivered(Answer):
    id: str
    outcome: Annotated[
        Literal["submitted", "held", "failed", "pressed"],
        Meta(
            description="submitted: the runtime has it; held: nothing was typed; failed: nothing confirms "
            "that it was submitted; pressed: the keys were pressed"
        ),
    ]
    reason: Annotated[
        str | None, Meta(description="Why it was held or failed, or the keys that were pressed")
    ]
    source: Annotated[str | None, Meta(description="What confirms it: event or screen")] = None
    hints: Annotated[tuple[str, ...], Meta(description="Commands that help if it was held")] = ()

    @property
    def exit_code(self) -> int:
        return 0 if self.outcome in ("submitted", "pressed") else NotDelivered.exit_code

    @property
    def told(self) -> str:
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome


class Deliveries(Answer):
    deliveries: tuple[Delivered, ...]

    @property
    def exit_code(self) -> int:
        return max((one.exit_code for one in self.deliveries), default=0)


_collect = gathered(Deliveries, deliveries=Delivered)


class Send(Request):
    ids: SomeBuilders
    text: Message


@in_parts(
    "Send a message to running builders",
    _collect,
    effect="changes",
    tolerant=True,
    outside=True,
    elsewhere="there",
)
def send(context: Context, request: Send) -> Iterator[Delivered]:
    return deliver_all(context.farm, choose_all(context, request.ids), request.text)


class MessageBuilder(Request):
    id: BuilderId
    text: Message


@acts(
    "Type a message into a builder's session; a message from another builder is signed with its id",
    who=frozenset({"architect", "builder"}),
    tolerant=True,
    outside=True,
    pool="send",
    elsewhere="there",
)
def message_builder(context: Context, request: MessageBuilder) -> Delivered:
    record = choose(context, request.id)
    text = _signed(context.caller_id, request.text) if context.caller == "builder" else request.text
    (delivered,) = deliver_all(context.farm, [record], text)
    return delivered


def _signed(builder: str, text: str) -> str:
    """Marks every line, so that none can pass for a message from somebody else."""
    lines = text.splitlines()
    if len(lines) < 2:
        return f"Message from builder {builder}: {text}"
    return "\n".join([f"Message from builder {builder}:", *(f"> {line}" for line in lines)])


class SendKeys(Request):
    ids: SomeBuilders
    keys: Annotated[str, Meta(description=f"Keys, separated by spaces: {' '.join(NAMED)}, or one character")]


@in_parts(
    "Press keys in running builders, to answer a dialog",
    _collect,
    effect="destroys",  # it answers in a person's place
    tolerant=True,
    outside=True,
    pool="send",
    details="Look at the screen with `capture` before and after; only the screen shows what the keys do.",
    elsewhere="there",
)
def send_keys(context: Context, request: SendKeys) -> Iterator[Delivered]:
    """Works even while a dialog is open."""
    keys = parse_keys(request.keys)
    return _each(context.farm, choose_all(context, request.ids), partial(_press, context.farm, keys))


def deliver_all(farm: Farm, records: Collection[BuilderRecord], text: str) -> Iterator[Delivered]:
    require_deliverable(text)
    return _each(farm, records, partial(_deliver, farm, text))


def _each(
    farm: Farm, records: Collection[BuilderRecord], act: Callable[[BuilderRecord, Found], Delivered]
) -> Iterator[Delivered]:
    """Several at once; yields each result as it comes."""
    found = find_panes(records)
    statuses = read_statuses(farm, records, found)
    able = []
    for record in records:
        held = _cannot_take(record, statuses[record.id], found[record.id])
        if held:
            yield held
        else:
            able.append(record)
    if len(able) < 2:  # on a thread, Ctrl-C would not be noticed
        yield from (_tell(act, record, found[record.id]) for record in able)
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed  # loads logging

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        running = [threads.submit(_tell, act, record, found[record.id]) for record in able]
        yield from (done.result() for done in as_completed(running))


def _tell(act: Callable[[BuilderRecord, Found], Delivered], record: BuilderRecord, found: Found) -> Delivered:
    """A failure with one does not stop the others."""
    try:
        return act(record, found)
    except (AgentFarmError, OSError) as error:
        why = f": {error.why}" if isinstance(error, AgentFarmError) and error.why else ""
        return Delivered(record.id, "failed", f"{error}{why}")


def _cannot_take(record: BuilderRecord, status: Status, found: Found) -> Delivered | None:
    """Why nobody would read the message, or None. A builder that could not be asked about is not gone."""

    def held(reason: str, hint: str) -> Delivered:
        return Delivered(record.id, "held", reason, hints=(hint,))

    if status.is_finished:
        again = "af recover" if status.state == "lost" else f"af resume {record.id}"
        return held(f"its runtime has ended ({status.state})", again)
    if status.state in ("queued", "creating", "preparing"):
        return held(f"its runtime has not started yet ({status.state})", f"af wait {record.id}")
    if not found.known:
        return held(f"tmux could not be asked: {found.reason}", "af doctor")
    if found.pane is None:
        return held(status.reason or "it has no tmux session", "af doctor")
    return None


def _deliver(farm: Farm, text: str, record: BuilderRecord, found: Found) -> Delivered:
    assert found.pane is not None
    try:
        adapter = get_adapter(record.runtime, farm.root)
    except ValueError as error:
        reason = f"{record.runtime}, its runtime, is not declared any more: {error}"
        return Delivered(record.id, "held", reason, hints=("$EDITOR agent_runtime.json",))
    if adapter.cli.has_door and (taken := pass_in(farm.run(record.id).door, record.run, text)):
        note(farm, record, "sent", f"{taken.outcome}, {len(text.encode())} bytes, through its plugin")
        return Delivered(record.id, taken.outcome, taken.reason, taken.source)
    typed, patterns = as_text(text, adapter.cli.own_words), adapter.cli.screen
    delivery = deliver(
        found.server.socket,
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
    hints = _hints(record, delivery)
    return Delivered(record.id, delivery.outcome, delivery.reason, delivery.source, hints)


def _hints(record: BuilderRecord, delivery: Delivery) -> tuple[str, ...]:
    if delivery.held_by is None:
        return ()
    attach = f"af attach {record.id}"
    return (attach, f"af send {record.id} --keys Enter") if delivery.held_by == "dialog" else (attach,)


def _watch(farm: Farm, record: BuilderRecord, adapter: RuntimeAdapter, typed: str) -> Watch:
    events = farm.run(record.id).events
    wanted = (record.run, adapter.cli.hooks.submitted, digest_of_prompt(typed))

    def from_now() -> Callable[[], bool]:
        return partial(has_come, events, events.stat().st_size if events.exists() else 0, wanted)

    return from_now


def _hesitation(farm: Farm, record: BuilderRecord, adapter: RuntimeAdapter) -> Hesitate:
    """Why to wait: a CLI types its first prompt itself, and reports a dialog before it has drawn it."""
    run = farm.run(record.id)
    try:
        prompted = bool(json.loads(read_own(run.launch)).get("prompted"))
    except (OSError, DamagedFile, ValueError, AttributeError, RecursionError):
        prompted = False

    def reason() -> str | None:
        newest = read_report(run.events, record.run).state
        if prompted and (newest is None or newest.source == "launcher"):
            return "it has not taken its first prompt yet"
        if newest is not None and newest.state == "waiting" and newest.event in adapter.cli.hooks.unsure:
            return "a dialog is opening" if time.time() - newest.at < _DIALOG_SECONDS else None
        return None

    return reason


def _press(farm: Farm, keys: Sequence[str], record: BuilderRecord, found: Found) -> Delivered:
    assert found.pane is not None
    delivery = press(
        found.server.socket,
        found.pane.pane_id,
        keys,
        lock=farm.paths.delivery_lock(record.id),
        runtime_pid=load_runtime_pid(farm.run(record.id).processes, record.run),
    )
    if delivery.outcome != "held":
        note(farm, record, "keys", f"{delivery.outcome}: {delivery.reason}")
    return Delivered(record.id, delivery.outcome, delivery.reason, delivery.source)

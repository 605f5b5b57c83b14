"""`report`, `ask_architect`: what a builder sends through the server about its state, and its questions."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from agent_farm.builders.events import QUESTION
from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import DamagedFile, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.own_events import event_of
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.own_files import read_own
from agent_farm.pane.journal import record_event
from agent_farm.pane.notices import Notice, facts

_REASON_LENGTH = 2000
_NEXT = "End your turn now. The answer arrives as a message."
Reported = Literal["working", "waiting", "idle"]


class Report(Request):
    state: Annotated[Reported, Meta(description="How you are")]
    message: Annotated[str, Meta(description="The reason, in one line")]
    phase: Annotated[str | None, Meta(description="The phase of your protocol that you are beginning")] = None


class ReportKept(Answer):
    state: Reported


@acts("Report your state to the architect", who=frozenset({"builder"}), tolerant=True, repeats=True)
def report(context: Context, request: Report) -> ReportKept:
    """The message becomes the reason in `af status`."""
    if request.phase is not None:
        _begin(context, request.phase)
    _record(context, "report", request.state, request.message)
    return ReportKept(request.state)


def _begin(context: Context, phase: str) -> None:
    farm = context.farm
    record = farm.require_exact(context.caller_id)
    known = next((one for one in record.phases if one.lower() == phase.strip().lower()), None)
    if known is None:
        there_are = f"Its phases are: {', '.join(record.phases)}." if record.phases else "It has no phases."
        raise UsageError(f"{phase!r:.80} is not a phase of the protocol", why=there_are)
    with farm.registry.edit() as records:
        if current := records.get(record.id):  # the record may have changed in the meantime
            records[record.id] = replace(current, phase=known)


class AskArchitect(Request):
    question: Annotated[str, Meta(description="The question")]


class QuestionAsked(Answer):
    asked: str
    next: Annotated[str, Meta(description="What to do until the answer comes")] = _NEXT


@acts(
    "Ask the architect",
    who=frozenset({"builder"}),
    tolerant=True,
    pool="report",
    details="Returns at once; end your turn, the answer comes as your next message.",
)
def ask_architect(context: Context, request: AskArchitect) -> QuestionAsked:
    """The builder then waits for the answer, which comes as a message (`af send`)."""
    if not request.question.strip():
        raise UsageError("The question is empty")
    _record(context, QUESTION, "waiting", request.question)
    return QuestionAsked(request.question)


def _record(context: Context, event: str, state: str, reason: str) -> None:
    farm, record = context.farm, context.farm.require_exact(context.caller_id)
    short = " ".join(reason.split())[:_REASON_LENGTH] or None
    entry = event_of(record, event, short, source="hook", state=state)
    before = record_event(str(farm.run(record.id).directory), entry)
    if state == "waiting" and before != "waiting":
        _notify(farm, record, entry)


def _notify(farm: Farm, record: BuilderRecord, entry: Mapping[str, object]) -> None:
    """Notify the user as configured, like the builder's own hooks would."""
    try:
        launch = json.loads(read_own(farm.run(record.id).launch))
    except (OSError, DamagedFile, ValueError):
        return
    for notice in (Notice.load(launch.get("notify")), Notice.load(launch.get("tell"))):
        if notice is not None and notice.is_for(entry["state"]):
            env = notice.environment(os.environ, facts(record.id, record.runtime, record.worktree, entry))
            threading.Thread(target=_run, args=(notice.argv, env, farm.root), daemon=True).start()


def _run(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
    """Called on a thread that waits for the command, so that the server leaves no zombies."""
    nothing = subprocess.DEVNULL
    with suppress(OSError):
        subprocess.run(
            command, cwd=cwd, env=env, stdin=nothing, stdout=nothing, stderr=nothing, check=False,
            start_new_session=True,
        )  # fmt: skip

"""What builders say through the server: how they are, and what they ask the architect."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_farm.builders.events import QUESTION
from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import DamagedFile, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.own_files import read_own
from agent_farm.pane.journal import record_event
from agent_farm.pane.notify import Notice, facts

REPORT = "report"
_REASON_LENGTH = 2000


def report(farm: Farm, record: BuilderRecord, state: str, message: str) -> None:
    """A builder says how it is; `message` is the reason that `af status` shows."""
    _record(farm, record, REPORT, state, message)


def ask_architect(farm: Farm, record: BuilderRecord, question: str) -> None:
    """The builder waits for an answer, which comes as a message (`af send`)."""
    if not question.strip():
        raise UsageError("The question is empty")
    _record(farm, record, QUESTION, "waiting", question)


def _record(farm: Farm, record: BuilderRecord, event: str, state: str, reason: str) -> None:
    run = farm.run(record.id)
    entry: dict[str, Any] = {
        "at": time.time(),
        "run": record.run,
        "source": "hook",
        "event": event,
        "state": state,
        "reason": " ".join(reason.split())[:_REASON_LENGTH] or None,
        "conversation_id": None,
    }
    before = record_event(str(run.directory), entry)
    if state == "waiting" and before != "waiting":
        _notify(farm, record, entry)


def _notify(farm: Farm, record: BuilderRecord, entry: Mapping[str, object]) -> None:
    """The command that the person wants to be told by, as the builder's own hooks would run it."""
    try:
        launch = json.loads(read_own(farm.run(record.id).launch))
    except (OSError, DamagedFile, ValueError):
        return
    notice = Notice.load(launch.get("notify"))
    if notice is not None and notice.is_for(entry["state"]):
        env = notice.environment(os.environ, facts(record.id, record.runtime, record.worktree, entry))
        threading.Thread(target=_run, args=(notice.argv, env, farm.root), daemon=True).start()


def _run(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
    """In a thread that waits for it: a server leaves no zombies behind."""
    nothing = subprocess.DEVNULL
    with suppress(OSError):
        subprocess.run(
            command, cwd=cwd, env=env, stdin=nothing, stdout=nothing, stderr=nothing, check=False,
            start_new_session=True,
        )  # fmt: skip

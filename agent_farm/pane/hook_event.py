"""Handles one event from a runtime's hook: reads it, interprets it as described, records it."""

from __future__ import annotations

import os
import select
import sys
import time

from agent_farm.lean import loads, suppress
from agent_farm.pane.journal import append_line, current_state, digest_of_prompt, record_event, write_json
from agent_farm.usage_limits import limit_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_PAYLOAD_SECONDS = 2.0
_REASON_LENGTH = 300
_ANSWER_LENGTH = 200_000
# What a turn ended with: the field that most CLIs use, and one CLI's own.
_ANSWERS = ("last_assistant_message", "prompt_response")
# The arguments of a tool that best describe what it is about to do.
_SUBJECTS = ("command", "file_path", "path", "url", "question", "description")
_DETAILS = ("notification_type", "tool_name", "source", "error", "transcript_path")


def main(argv: list[str]) -> None:
    if argv and argv[0] == "--json-reply":
        argv = argv[1:]
        sys.stdout.write("{}\n")
        sys.stdout.flush()
    directory, run, name = argv[:3]
    payload = _load_payload()
    if name == "-":
        name = str(payload.get("hook_event_name") or "unknown")
    with open(os.path.join(directory, "launch.json"), "rb") as file:
        launch = loads(file.read())
    event = _event(run, name, payload, launch.get("hooks") or {})
    if payload.get("agent_id") and event["state"] == "working" and current_state(directory, run) != "waiting":
        event["state"] = None  # a sub-agent in the background does not restart a turn that has ended
    if event["state"] == "idle":
        _record_answer(directory, run, payload)  # before the event: whoever sees that looks for it
    before = record_event(directory, event)
    if event["state"] == "idle":
        _record_usage(directory, event, payload)
    if event["state"] in ("waiting", "limited", "idle") and before != event["state"]:
        for name in ("notify", "tell", "check"):
            if launch.get(name):
                _start(directory, launch, name, event)


def _record_usage(directory: str, event: Mapping[str, object], payload: Mapping[str, object]) -> None:
    from agent_farm.pane.usage import usage_of

    usage = usage_of(payload)
    if usage:
        write_json(directory, "usage.json", {"version": 1, "run": event["run"], **usage})
        step = {"at": event["at"], "run": event["run"], "conversation": event["conversation_id"], **usage}
        append_line(directory, "usage.jsonl", step)


def _record_answer(directory: str, run: str, payload: Mapping[str, object]) -> None:
    text = next((found for field in _ANSWERS if isinstance(found := payload.get(field), str)), None)
    if text:
        answer = {"at": time.time(), "text": text[:_ANSWER_LENGTH]}
        write_json(directory, "answer.json", {"version": 1, "run": run, **answer})


def _load_payload() -> dict[str, object]:
    """Time is limited, because a runtime that leaves the pipe open must not be delayed."""
    if sys.stdin.isatty():
        return {}
    parts = []
    deadline = time.monotonic() + _PAYLOAD_SECONDS
    while select.select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(0, 1 << 16)
        if not part:
            break
        parts.append(part)
    with suppress(ValueError):
        payload = loads(b"".join(parts))
        if isinstance(payload, dict):
            return payload
    return {}


def _event(run: str, name: str, payload: Mapping[str, object], hooks: Mapping[str, Any]) -> dict[str, object]:
    """`hooks` describes the payloads of this runtime's hooks: see runtimes/cli.py."""
    state = _state(name, payload, hooks)
    reason = _reason(payload, hooks) if state == "waiting" else None
    if (
        reason
        and name not in hooks.get("unsure", ())
        and (limit := limit_in(reason, hooks.get("limited", "")))
    ):
        state, reason = "limited", limit
    event: dict[str, object] = {
        "at": time.time(),
        "run": run,
        "source": "hook",
        "event": name,
        "state": state,
        "reason": reason,
        "conversation_id": _first(payload, hooks.get("conversation", ())),
    }
    detail = {field: value for field in _DETAILS if (value := _first(payload, (field,)))}
    written = _written(payload, hooks.get("writers", {}))
    if written:
        detail["file"] = written
    if name == hooks.get("submitted") and isinstance(
        payload.get("prompt"), str
    ):  # `af send` recognises its own message by it
        detail["said"] = digest_of_prompt(str(payload["prompt"]))
    return event | {"detail": detail} if detail else event


def _reason(payload: Mapping[str, object], hooks: Mapping[str, Any]) -> str | None:
    """The question for a person; for a tool, also what it is about to be used on."""
    reason, given = _first(payload, hooks.get("reason", ())), payload.get(hooks.get("asked_about", ""))
    about = _first(given, _SUBJECTS) if isinstance(given, dict) else None
    return f"{reason}: {about}"[:_REASON_LENGTH] if about else reason


def _written(payload: Mapping[str, object], writers: Mapping[str, str]) -> str | None:
    """The absolute path of the file that a tool just wrote: `af doctor` checks where it is."""
    given, field = payload.get("tool_input"), writers.get(str(payload.get("tool_name")))
    path = _first(given, (field,)) if field and isinstance(given, dict) else None
    return os.path.join(str(payload.get("cwd") or os.getcwd()), path) if path else None


def _state(name: str, payload: Mapping[str, object], hooks: Mapping[str, Any]) -> str | None:
    states: Mapping[str, str] = hooks.get("states", {})
    told = (states.get(f"{name}:{payload.get(field)}") for field in hooks.get("kind", ()))
    return next(filter(None, told), states.get(name))


def _first(payload: Mapping[str, object], fields: Iterable[str]) -> str | None:
    """The first field with text, as one printable line."""
    for field in fields:
        value = payload.get(field)
        if isinstance(value, dict):  # an error may be an object
            value = value.get("message")
        if isinstance(value, str) and value.strip():
            printable = "".join(c if c.isprintable() else " " for c in value[: 4 * _REASON_LENGTH])
            return " ".join(printable.split())[:_REASON_LENGTH]
    return None


def _start(directory: str, launch: Mapping[str, object], name: str, event: Mapping[str, object]) -> None:
    from agent_farm.pane.notices import Notice, facts, start_detached

    notice = Notice.load(launch[name])
    if notice is None or not notice.is_for(event["state"]):
        return
    worktree = str(launch.get("worktree"))
    told = facts(str(launch.get("builder")), str(launch.get("runtime")), worktree, event)
    env, root = notice.environment(os.environ, told), os.environ.get("AF_ROOT", worktree)
    start_detached(notice.argv, env, root, os.path.join(directory, f"{name}.log"))

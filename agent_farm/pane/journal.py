"""What happened, on disk: events.jsonl, exit.json, processes.json. Hooks import it, so it stays small."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping

_TAIL = 65536
# The server has told a builder's runtime its tools.
TOOLS_TOLD = "tools"


def record_event(directory: str, event: Mapping[str, object]) -> str | None:
    """Append one event; the state the same run was in before it, if it ever said one."""
    line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    path = os.path.join(directory, "events.jsonl")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        before = _last_state(descriptor, event.get("run"))
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
    return before


def append_line(directory: str, name: str, document: Mapping[str, object]) -> None:
    """In one write, so that two that come at once stay two lines."""
    line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    path = os.path.join(directory, name)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def digest_of_prompt(text: str) -> str:
    """Of what an input line leaves as it is: it may turn a tab into blanks, trim, drop what has no width."""
    import hashlib

    kept = "".join(letter for letter in text if letter.isprintable() and letter != " ")
    return hashlib.sha256(kept.encode("utf-8", "replace")).hexdigest()


def current_state(directory: str, run: str) -> str | None:
    """The state the run is in, as far as it said one."""
    try:
        descriptor = os.open(os.path.join(directory, "events.jsonl"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _last_state(descriptor, run)
    finally:
        os.close(descriptor)


def has_event(directory: str, run: str, name: str) -> bool:
    """Whether there was such an event in this run, lately."""
    try:
        descriptor = os.open(os.path.join(directory, "events.jsonl"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return any(event.get("run") == run and event.get("event") == name for event in _newest(descriptor))
    finally:
        os.close(descriptor)


def _last_state(descriptor: int, run: object) -> str | None:
    states = (
        event["state"] for event in _newest(descriptor) if event.get("run") == run and event.get("state")
    )
    return next(map(str, states), None)


def _newest(descriptor: int) -> Iterator[dict[str, object]]:
    """The last events, from the newest on."""
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, _TAIL, max(0, size - _TAIL))
    for line in reversed(tail.split(b"\n")):
        try:
            event = json.loads(line) if line else None
        except (ValueError, RecursionError):  # the first line of the tail is cut; or somebody scribbled
            continue
        if isinstance(event, dict):
            yield event


def launcher_event(run: str, name: str, state: str | None, reason: str | None = None) -> dict[str, object]:
    return {
        "at": time.time(),
        "run": run,
        "source": "launcher",
        "event": name,
        "state": state,
        "reason": reason,
        "conversation_id": None,
    }


def write_json(directory: str, name: str, content: Mapping[str, object]) -> None:
    """Whole or not at all."""
    path = os.path.join(directory, name)
    temporary = os.path.join(directory, f".{name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)

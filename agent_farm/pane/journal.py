"""Records what happened in events.jsonl, exit.json and processes.json. Hooks import it, so it stays small."""

from __future__ import annotations

import fcntl
import os
import time

from agent_farm.lean import dumps, loads, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_EVENTS = "events.jsonl"
_TAIL = 65536
_LOCK_SECONDS = 2.0
# Event: the server has listed its tools to a builder's runtime.
TOOLS_TOLD = "tools"


def record_event(directory: str, event: Mapping[str, object]) -> str | None:
    """Append one event; returns the last state that the same run reported before, if any."""
    descriptor = _open(directory, _EVENTS)
    try:
        _lock(descriptor)
        before = _last_state(_newest(descriptor), event.get("run"))
        os.write(descriptor, _line(event))
    finally:
        os.close(descriptor)
    return before


def _lock(descriptor: int) -> None:
    """So that each writer knows the state before its own.

    Not for longer, or a builder could keep everybody out: a line is written in one piece in any case.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return


def append_line(directory: str, name: str, document: Mapping[str, object]) -> None:
    """In one write, so that two lines written at once stay separate."""
    descriptor = _open(directory, name)
    try:
        os.write(descriptor, _line(document))
    finally:
        os.close(descriptor)


def _open(directory: str, name: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(os.path.join(directory, name), flags, 0o600)


def _line(document: Mapping[str, object]) -> bytes:
    return dumps(document, separators=(",", ":")).encode() + b"\n"


def digest_of_prompt(text: str) -> str:
    """A digest that ignores what an input line may change: blanks, tabs, and characters without width."""
    from agent_farm.digests import sha256  # few events have a text

    kept = "".join(letter for letter in text if letter.isprintable() and letter != " ")
    return sha256(kept.encode("utf-8", "replace")).hexdigest()


def current_state(directory: str, run: str) -> str | None:
    """The last state the run reported."""
    return _last_state(_lately(directory), run)


def has_event(directory: str, run: str, name: str) -> bool:
    """Whether the run recently had such an event."""
    return any(event.get("run") == run and event.get("event") == name for event in _lately(directory))


def _last_state(newest: Iterable[Mapping[str, object]], run: object) -> str | None:
    states = (event["state"] for event in newest if event.get("run") == run and event.get("state"))
    return next(map(str, states), None)


def _lately(directory: str) -> Iterator[dict[str, object]]:
    """Recent events; none if there is no journal yet."""
    with suppress(FileNotFoundError), open(os.path.join(directory, _EVENTS), "rb") as file:
        yield from _newest(file.fileno())


def _newest(descriptor: int) -> Iterator[dict[str, object]]:
    """The last events, newest first."""
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, _TAIL, max(0, size - _TAIL))
    for line in reversed(tail.split(b"\n")):
        try:
            event = loads(line) if line else None
        except (ValueError, RecursionError):  # a line that is cut off, or that somebody wrote
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
    """Replaces the file as a whole, by way of a file that nobody can have put there before."""
    path = os.path.join(directory, name)
    temporary = os.path.join(directory, f".{name}.{os.urandom(4).hex()}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w") as file:
        file.write(dumps(content))
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)

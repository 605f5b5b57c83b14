"""An agent's process, headless: output read as it comes, and no process of it left afterwards.

It runs under the guard of the runtimes room, which ends the whole process group when the agent has ended,
and when this process is gone, `kill -9` included; then it removes the directory as well.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agent_farm.errors import AgentFarmError, TimedOut
from agent_farm.launch import Launch
from agent_farm.lctx.ending import undisturbed
from agent_farm.runtimes.process import GUARD

OnLine = Callable[[bytes], None]
_GRACE_SECONDS = 3.0
_END_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Ended:
    """`signal` names what killed it; `cannot_start` is why it never ran."""

    exit_code: int | None = None
    signal: str | None = None
    cannot_start: str | None = None


def run_headless(
    launch: Launch,
    *,
    stdin: Path | None,
    on_output: OnLine,
    on_error: OnLine,
    on_tick: Callable[[], None],
    timeout: float | None = None,
) -> Ended:
    """Until the agent has ended; TimedOut after `timeout` seconds. `on_tick` comes at least once a second.

    `launch.cwd` is removed by the guard should this process die.
    """
    lifeline_end, lifeline = os.pipe()
    status, status_end = os.pipe()
    try:
        with open(stdin or os.devnull, "rb") as given:
            guard = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", os.fspath(GUARD)),
                    *(str(lifeline_end), str(status_end), str(_GRACE_SECONDS), os.fspath(launch.cwd)),
                    *launch.argv,
                ],
                cwd=launch.cwd,
                env=dict(launch.env),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(lifeline_end, status_end),
                start_new_session=True,
            )
    except OSError as error:
        os.close(lifeline)
        os.close(status)
        raise AgentFarmError(f"{launch.argv[0]} cannot be started", why=_start_failure(error)) from error
    finally:
        os.close(lifeline_end)
        os.close(status_end)
    try:
        with guard:
            try:
                _read(guard, on_output, on_error, on_tick, timeout)
            finally:
                with undisturbed():
                    os.close(lifeline)  # ends what is left of the group
                    _wait_for(guard)
        return _ended(_read_all(status))
    finally:
        os.close(status)


def _read(
    guard: subprocess.Popen[bytes],
    on_output: OnLine,
    on_error: OnLine,
    on_tick: Callable[[], None],
    timeout: float | None,
) -> None:
    deadline = None if timeout is None else time.monotonic() + timeout
    assert guard.stdout is not None
    assert guard.stderr is not None
    with selectors.DefaultSelector() as selector:
        for stream, take in ((guard.stdout, on_output), (guard.stderr, on_error)):
            selector.register(stream, selectors.EVENT_READ, _Lines(stream, take))
        while selector.get_map():
            ready = selector.select(
                1.0 if deadline is None else min(1.0, max(0.0, deadline - time.monotonic()))
            )
            for key, _ in ready:
                if not key.data.read():
                    selector.unregister(key.fileobj)
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut(f"No answer within {timeout:g} seconds", hint="af ask --timeout SECONDS …")
            on_tick()


class _Lines:
    """The lines of one pipe, each with its end; the last one may have none."""

    def __init__(self, stream: IO[bytes], take: OnLine) -> None:
        self._descriptor, self._take = stream.fileno(), take
        self._rest = b""

    def read(self) -> bool:
        """Take what is there; False at the end."""
        part = os.read(self._descriptor, 1 << 16)
        *lines, self._rest = (self._rest + part).splitlines(keepends=True) if part else (self._rest, b"")
        if self._rest.endswith(b"\n"):
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            if line:
                self._take(line)
        return bool(part)


def _wait_for(guard: subprocess.Popen[bytes]) -> None:
    try:
        guard.communicate(timeout=_END_SECONDS)  # reads on, or a full pipe would keep the agent alive
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(guard.pid, signal.SIGKILL)


def _read_all(status: int) -> str:
    text = b""
    while part := os.read(status, 4096):
        text += part
    return text.decode(errors="replace")


def _ended(words: str) -> Ended:
    facts = {word: rest for word, _, rest in (line.partition(" ") for line in words.splitlines())}
    if "failed" in facts:
        return Ended(cannot_start=facts["failed"])
    code = int(facts["ended"]) if facts.get("ended", "").lstrip("-").isdecimal() else -signal.SIGKILL
    if code >= 0:
        return Ended(exit_code=code)
    return Ended(signal=signal.Signals(-code).name)


def _start_failure(error: OSError) -> str:
    import errno

    if error.errno == errno.E2BIG:
        return "a word of its command is too long; give the prompt as standard input or by {prompt_file}"
    return error.strerror or str(error)

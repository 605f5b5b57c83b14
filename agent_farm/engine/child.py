"""Carrying out one call on this machine: a process of its own, whose environment is nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from agent_farm.errors import Overdue, Unreachable

MOST_BYTES = 32 * 1024 * 1024
_OF_AN_ENGINE = ("RAY_", "AF_RUN", "AF_BUILDER_ID")  # with its keys; no builder sees them
_LAST_WORDS = 4000

Begun = Callable[["subprocess.Popen[bytes]"], None]


def answer_here(
    data: bytes, seconds: float, environ: Mapping[str, str] | None = None, begun: Begun = lambda process: None
) -> Iterator[bytes]:
    """The lines of `af fleet answer`; it ends, with what it started in its session, once nobody listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "fleet", "answer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path("/"),
        env=_clean(os.environ if environ is None else environ),
        start_new_session=True,
    )
    begun(process)
    late = threading.Event()

    def is_late() -> None:
        late.set()
        _end(process)

    clock = threading.Timer(seconds, is_late)
    said: list[bytes] = []
    writes = threading.Thread(target=_write, args=(process, data))
    drains = threading.Thread(target=_drain, args=(process, said))
    for thread in (clock, writes, drains):
        thread.daemon = True
        thread.start()
    try:
        yield from _lines(process)
        status = process.wait()
    finally:
        clock.cancel()
        _end(process)
        process.wait()
        with suppress(OSError):
            assert process.stdout
            process.stdout.close()
    drains.join(1)
    if late.is_set():
        raise Overdue(f"It has not answered within {seconds:g} s")
    if status < 0:
        raise Unreachable("It was ended")
    if status:
        lines = b"".join(said).decode("utf-8", "replace").splitlines()
        raise Unreachable("It broke off", why=lines[-1][:300] if lines else f"It ended with {status}.")


def _lines(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    assert process.stdout
    left = MOST_BYTES
    while line := process.stdout.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise Unreachable(f"It answered more than {MOST_BYTES} bytes")
        yield line


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(_OF_AN_ENGINE)}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin
    with suppress(OSError, ValueError), process.stdin as stream:
        stream.write(data)


def _drain(process: subprocess.Popen[bytes], said: list[bytes]) -> None:
    kept = 0
    assert process.stderr
    with suppress(OSError, ValueError), process.stderr as stream:
        for line in stream:
            if kept < _LAST_WORDS:
                said.append(line[:_LAST_WORDS])
                kept += len(line)

"""Carries out one call on this machine, in a process and environment of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from agent_farm.asked_program import AskedProgram
from agent_farm.errors import Overdue, Unreachable
from agent_farm.own_process import python_argv

NAMES = "AF_NODE_VARIABLES"  # on a node: the variables that its user had set before an engine added its own
_OF_AN_ENGINE = ("RAY_", "AF_RUN", "AF_BUILDER_ID", NAMES)  # with an engine's keys; no builder sees them

Begun = Callable[["subprocess.Popen[bytes]"], None]


def answer_here(
    data: bytes, seconds: float, environ: Mapping[str, str] | None = None, begun: Begun = lambda process: None
) -> Iterator[bytes]:
    """The lines that `af fleet answer` prints; its session is ended once nobody listens."""
    process = subprocess.Popen(
        python_argv("agent_farm.cli.main", "fleet", "answer"),
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
        end_group(process)

    clock = threading.Timer(seconds, is_late)
    clock.daemon = True
    clock.start()
    asked = AskedProgram(process, data)
    try:
        yield from asked.lines("It")
        status = process.wait()
    finally:
        clock.cancel()
        end_group(process)
        process.wait()
        with suppress(OSError):
            assert process.stdout
            process.stdout.close()
    if late.is_set():
        raise Overdue(f"It has not answered within {seconds:g} s")
    if status < 0:
        raise Unreachable("It was ended")
    if status:
        raise Unreachable("It broke off", why=asked.last_words() or f"It ended with {status}.")


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    had = environ[NAMES].split(":") if NAMES in environ else environ
    return {name: environ[name] for name in had if name in environ and not name.startswith(_OF_AN_ENGINE)}


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Does nothing if it has ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

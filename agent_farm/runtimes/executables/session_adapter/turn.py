"""One turn of a session: the CLI behind a guard, its output into the log, its limit, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from types import FrameType
from typing import TextIO

from agent_farm.runtimes.executables.session_adapter.clis import Cli, learn_from
from agent_farm.runtimes.executables.session_adapter.files import replace_json
from agent_farm.runtimes.executables.session_adapter.log import Log
from agent_farm.runtimes.executables.session_adapter.store import Session

_GUARD = Path(__file__).parents[2] / "guard.py"
_GRACE_SECONDS = 2.0  # less than a pane gives to what it leaves behind, so that the end can still be noted
_GUARD_SECONDS = _GRACE_SECONDS * 2 + 12
_POLL_SECONDS = 0.05
_LINE_BYTES, _CHUNK_BYTES = 1 << 20, 1 << 16
TIMED_OUT = 124


class Stop:
    """Whether a signal has asked for the end; it may come before there is anything to end."""

    def __init__(self) -> None:
        self.number: int | None = None

    def listen(self) -> None:
        """Handlers, not SIG_IGN, which the CLI would inherit."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)
        signal.signal(signal.SIGHUP, lambda number, frame: None)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.number = number


def run_turn(session: Session, cli: Cli, verb: str, minutes: float, stop: Stop, log: Log) -> int:
    """The CLI's exit code; however this ends, by the death of this process too, nothing of it goes on."""
    if stop.number is not None:
        raise OSError("ended by a signal before it began")
    process, lifeline, status = _start(session, cli, verb)
    reader = threading.Thread(target=_copy, args=(process, cli, session, log), daemon=True)
    reader.start()
    try:
        said, _, number = status.readline().strip().partition(" ")  # "group PID", or "failed WHY"
        if said != "group":
            raise OSError(f"{cli.binary}: {number or 'its guard did not start'}")
        log.say(f"{cli.binary} {verb}: process {number}, at most {minutes:g} minutes")
        with suppress(OSError):  # then it stays pending; it is at work all the same
            replace_json(session.outcome, {"status": "active"})
        cut = _wait(process, minutes * 60, stop)
    finally:
        os.close(lifeline)
        _end(process)
        reader.join(timeout=5)
    if cut == TIMED_OUT:
        log.say(f"ended after {minutes:g} minutes (timeout_minutes)")
    code = _exit_code(status.readline()) if cut is None else cut
    log.say(f"{cli.binary} ended with {code}")
    return code


def _exit_code(told: str) -> int:
    """From the guard's "ended CODE"; a guard that was killed tells nothing."""
    _, _, word = told.strip().partition(" ")
    return int(word) if word not in ("", "None") else -signal.SIGKILL


def _start(session: Session, cli: Cli, verb: str) -> tuple[subprocess.Popen[bytes], int, TextIO]:
    """The guard, the descriptor whose closing ends what it guards, and what the guard tells of it."""
    binary = cli.find()
    if binary is None:
        raise OSError(cli.problem())
    words = cli.resume(session.conversation) if verb == "resume" else cli.begin(session.conversation)
    lifeline_end, lifeline = os.pipe()
    status, status_end = os.pipe()
    guarded = [str(lifeline_end), str(status_end), str(_GRACE_SECONDS), "", binary, *words]
    with open(session.prompt_file, "rb") as prompt:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), *guarded],
            cwd=session.cwd,
            stdin=prompt,
            stdout=subprocess.PIPE,
            pass_fds=(lifeline_end, status_end),
        )
    os.close(lifeline_end)
    os.close(status_end)
    return process, lifeline, open(status, encoding="utf-8")


def _wait(process: subprocess.Popen[bytes], seconds: float, stop: Stop) -> int | None:
    """None when it ended by itself, else the code that stands for what cut it short."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if stop.number is not None:
            return 128 + stop.number
        if time.monotonic() > deadline:
            return TIMED_OUT
        time.sleep(_POLL_SECONDS)
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """The guard ends what it guards, and then itself; the kernel ends the CLI of a guard that is killed."""
    try:
        process.wait(timeout=_GUARD_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _copy(process: subprocess.Popen[bytes], cli: Cli, session: Session, log: Log) -> None:
    """Into the log as it comes; a whole line of sensible length may tell the conversation's id."""
    assert isinstance(process.stdout, BufferedReader)
    line, too_long = b"", False
    while chunk := process.stdout.read1(_CHUNK_BYTES):
        log.copy(chunk)
        *whole, rest = (line + chunk).split(b"\n")
        for told in whole[int(too_long) :]:
            session = _learn(cli, told, session, log)
        too_long = len(rest) > _LINE_BYTES or (too_long and not whole)
        line = b"" if too_long else rest


def _learn(cli: Cli, line: bytes, session: Session, log: Log) -> Session:
    conversation = learn_from(cli, line)
    if conversation is None or conversation == session.conversation:
        return session
    try:
        return session.with_conversation(conversation)
    except OSError as error:
        log.say(f"cannot keep the conversation id {conversation}: {error}")
        return session

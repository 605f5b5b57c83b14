"""Runs one CLI for one session in the background: its log, its limit, its end.

`supervisor.py <session directory> begin|resume <descriptor>`; "alive" goes to the descriptor once the session
is locked.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":  # started as a file
    sys.path.append(str(Path(__file__).resolve().parents[4]))

from agent_farm.runtimes.executables.session_adapter.clis import CLIS, Cli, learn_from
from agent_farm.runtimes.executables.session_adapter.files import replace_json
from agent_farm.runtimes.executables.session_adapter.limits import Limits, load_limits
from agent_farm.runtimes.executables.session_adapter.state import changed_files, end_state, head
from agent_farm.runtimes.executables.session_adapter.store import Session, Sessions

_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05


def main(directory: Path, verb: str, ready: int) -> int:
    sessions = Sessions(directory.parents[2], directory.parent)
    session = sessions.load(directory.name)
    lock = os.open(session.alive_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(ready, b"alive")
    os.close(ready)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    limits = load_limits(sessions.root, session.runtime)
    before = head(session.cwd)
    failed = True
    try:
        failed = _run(session, CLIS[session.runtime], verb, limits) != 0
    except OSError as error:
        _log(f"cannot run: {error}")
    finally:
        end_state(session.state, failed=failed, artifacts=changed_files(session.cwd, before))
        if limits.cleanup:
            with suppress(FileNotFoundError):
                session.prompt_file.unlink()
        replace_json(session.outcome, {"status": "failed" if failed else "completed"})
    return int(failed)


def _run(session: Session, cli: Cli, verb: str, limits: Limits) -> int:
    binary = cli.find()
    if binary is None:
        raise OSError(f"{cli.binary} is not on PATH")
    words = cli.resume(session.conversation) if verb == "resume" else cli.begin(session.conversation)
    with open(session.prompt_file, "rb") as prompt:
        process = subprocess.Popen(
            [binary, *words],
            cwd=session.cwd,
            stdin=prompt,
            stdout=subprocess.PIPE,
            stderr=None,
            process_group=0,
        )
    signal.signal(signal.SIGTERM, lambda number, frame: _end_group(process))
    _log(f"{cli.binary} {verb}: process {process.pid}, at most {limits.minutes:g} minutes")
    replace_json(session.outcome, {"status": "active"})
    reader = threading.Thread(target=_copy, args=(process, cli, session), daemon=True)
    reader.start()
    code = _wait(process, limits)
    reader.join(timeout=5)
    _log(f"{cli.binary} ended with {code}")
    return code


def _wait(process: subprocess.Popen[bytes], limits: Limits) -> int:
    try:
        code = process.wait(timeout=limits.minutes * 60)
    except subprocess.TimeoutExpired:
        _log(f"ended after {limits.minutes:g} minutes (timeout_minutes)")
        code = 124
    _end_group(process)
    return code


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM, then KILL; what the CLI left running goes with it."""
    for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, _GRACE_SECONDS)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + seconds
        while _group_lives(process):
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        else:
            return


def _group_lives(process: subprocess.Popen[bytes]) -> bool:
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _copy(process: subprocess.Popen[bytes], cli: Cli, session: Session) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        conversation = learn_from(cli, line)
        if conversation and conversation != session.conversation:
            session = session.with_conversation(conversation)


def _log(message: str) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    sys.stdout.buffer.write((json.dumps({"at": at, "adapter": message}) + "\n").encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))

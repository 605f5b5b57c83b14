"""Runs one turn of one session in the background, and notes how it ended.

`supervisor.py <session directory> begin|resume <descriptor>`; "alive" goes to the descriptor once the session
is locked.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":  # started as a file
    sys.path.append(str(Path(__file__).resolve().parents[4]))

from agent_farm.runtimes.executables.session_adapter.clis import CLIS
from agent_farm.runtimes.executables.session_adapter.files import replace_json
from agent_farm.runtimes.executables.session_adapter.limits import Limits, load_limits
from agent_farm.runtimes.executables.session_adapter.log import Log
from agent_farm.runtimes.executables.session_adapter.picture import NoPicture, Picture, take_picture
from agent_farm.runtimes.executables.session_adapter.state import end_state
from agent_farm.runtimes.executables.session_adapter.store import Session, Sessions
from agent_farm.runtimes.executables.session_adapter.turn import Stop, run_turn


def main(directory: Path, verb: str, ready: int) -> int:
    stop, log = Stop(), Log(sys.stdout.fileno())
    stop.listen()
    sessions = Sessions(directory.parents[2], directory.parent)
    session = sessions.load(directory.name)
    lock = os.open(session.alive_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with suppress(BrokenPipeError):  # whoever began it has gone; asked again, it gives the same session
        os.write(ready, b"alive")
    os.close(ready)
    limits = load_limits(sessions.root, session.runtime)
    picture = _picture(session, log)
    failed = True
    try:
        failed = run_turn(session, CLIS[session.runtime], verb, limits.minutes, stop, log) != 0
    except Exception as error:  # whatever it was: the end is noted
        log.say(f"cannot run: {error!r}" if not isinstance(error, OSError) else f"cannot run: {error}")
    _note_end(session, picture, limits, failed, log)
    return int(failed)


def _picture(session: Session, log: Log) -> Picture | None:
    try:
        return take_picture(session.cwd)
    except NoPicture as error:
        log.say(f"artifacts are not looked for: {error}")
        return None


def _note_end(session: Session, picture: Picture | None, limits: Limits, failed: bool, log: Log) -> None:
    """Steps, none of which keeps another from being done; the outcome last, as the sign that all are."""

    def clean_up() -> None:
        if limits.cleanup:
            session.prompt_file.unlink(missing_ok=True)

    def end() -> None:
        end_state(session.state, session.brief, failed=failed, artifacts=artifacts)

    artifacts = _artifacts(session, picture, log)
    _try("keep the artifacts", lambda: replace_json(session.artifacts_file, artifacts), log)
    _try("write the state", end, log)
    _try("clean up", clean_up, log)
    status = "failed" if failed else "completed"
    _try("write the outcome", lambda: replace_json(session.outcome, {"status": status}), log)


def _artifacts(session: Session, picture: Picture | None, log: Log) -> list[str]:
    """What this turn made, after what the turns before it did."""
    try:
        before = [str(name) for name in json.loads(session.artifacts_file.read_bytes())]
    except (OSError, ValueError, TypeError):
        before = []
    state = session.state
    aside = state.parent.glob(f"{state.name}.damaged*")
    try:
        made = picture.made_since([session.brief, state, *aside]) if picture else []
    except (NoPicture, OSError) as error:
        log.say(f"artifacts are not known: {error}")
        made = []
    return list(dict.fromkeys([*before, *made]))


def _try(what: str, step: Callable[[], None], log: Log) -> None:
    try:
        step()
    except Exception as error:
        log.say(f"cannot {what}: {error}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))

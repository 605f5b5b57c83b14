"""The command line of a shipped adapter executable."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_farm.runtimes.executables.session_adapter.clis import CLIS
from agent_farm.runtimes.executables.session_adapter.start import start_supervisor
from agent_farm.runtimes.executables.session_adapter.state import begin_state, end_state
from agent_farm.runtimes.executables.session_adapter.store import Session, Sessions, UnknownSession

USAGE = """usage: {name} spawn BRIEF STATE PROMPT
       {name} resume ID STATE PROMPT
       {name} check_status ID"""
_WORDS = {"spawn": 4, "resume": 4, "check_status": 2}
FAILED, WRONG_ARGUMENTS, NO_SESSION, NOT_INSTALLED, STILL_ACTIVE = 1, 2, 3, 4, 5


class Refused(Exception):
    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def main(name: str, argv: Sequence[str]) -> int:
    if not argv or len(argv) != _WORDS.get(argv[0], 0):
        sys.stderr.write(USAGE.format(name=name) + "\n")
        return WRONG_ARGUMENTS
    try:
        sys.stdout.write(_answer(name, Sessions.of(Path.cwd()), *argv) + "\n")
    except UnknownSession as error:
        return _said(name, f"no session {error}", NO_SESSION)
    except Refused as error:
        return _said(name, str(error), error.code)
    except OSError as error:
        return _said(name, str(error), FAILED)
    return 0


def _answer(name: str, sessions: Sessions, command: str, *words: str) -> str:
    if command == "spawn":
        return _spawn(name, sessions, *words)
    if command == "resume":
        return _resume(name, sessions, *words)
    return sessions.load(words[0], name).status()


def _spawn(name: str, sessions: Sessions, brief: str, state: str, prompt: str) -> str:
    """The id of a new session, or of the one that lives already for this brief and state."""
    brief_path, state_path = Path(brief).absolute(), Path(state).absolute()
    if not brief_path.is_file():
        raise Refused(f"no brief {brief}", WRONG_ARGUMENTS)
    _require_cli(name)
    with sessions.lock():
        known = sessions.living(name, brief_path, state_path)
        if known is not None:
            return known.id
        session = sessions.create(name, brief_path, state_path, Path.cwd())
        _start(session, _with_brief(prompt, brief_path, state_path), resume=False)
    return session.id


def _resume(name: str, sessions: Sessions, identity: str, state: str, prompt: str) -> str:
    sessions.load(identity, name)
    _require_cli(name)
    with sessions.lock():
        if sessions.load(identity, name).is_alive():
            raise Refused(f"session {identity} is still at work", STILL_ACTIVE)
        session = sessions.load(identity, name)  # as its last turn left it, which may have ended only now
        session = session.with_state(Path(state).absolute())
        _start(session, prompt, resume=True)
    return f"resumed {identity}"


def _start(session: Session, prompt: str, *, resume: bool) -> None:
    begin_state(session.state, session.brief)
    try:
        session.prompt_file.write_bytes(os.fsencode(prompt))
        start_supervisor(session, resume=resume)
    except OSError:
        end_state(session.state, session.brief, failed=True, artifacts=[])
        raise


def _with_brief(prompt: str, brief: Path, state: Path) -> str:
    text = brief.read_text(encoding="utf-8", errors="surrogateescape")
    task = "" if prompt.strip() in text else f"{prompt}\n\n"  # a farm's brief holds it already
    return (
        f"{task}The brief of your task ({brief}):\n\n{text}\n\n"
        f"Keep {state} up to date as you go: a JSON object with lego_name, status, current_substep, "
        "completed_substeps, failure_count and artifacts."
    )


def _require_cli(name: str) -> None:
    if problem := CLIS[name].problem():
        raise Refused(problem, NOT_INSTALLED)


def _said(name: str, message: str, code: int) -> int:
    sys.stderr.write(f"{name}: {message}\n")
    return code

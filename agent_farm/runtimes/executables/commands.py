"""The command line of a shipped adapter executable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.executables.adapter_session import (
    AdapterSession,
    Assignment,
    Sessions,
    UnknownSession,
)
from agent_farm.runtimes.executables.artifacts import commit_of, differing_files
from agent_farm.runtimes.executables.shipped import EXECUTABLES
from agent_farm.runtimes.executables.state_file import begin_state, end_state

_USAGE = """usage: {name} spawn BRIEF STATE PROMPT
       {name} resume ID STATE PROMPT
       {name} check_status ID"""
_FAILED, _WRONG_ARGUMENTS, _NO_SESSION, _NOT_INSTALLED, _STILL_AT_WORK = 1, 2, 3, 4, 5


class _Refused(Exception):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def main(name: str, argv: Sequence[str]) -> int:
    sessions = Sessions.of(Path.cwd())
    try:
        match argv:
            case ["spawn", brief, state, prompt]:
                answer = _spawn(name, sessions, Path(brief).absolute(), Path(state).absolute(), prompt)
            case ["resume", identity, state, prompt]:
                answer = _resume(name, sessions, identity, Path(state).absolute(), prompt)
            case ["check_status", identity]:
                answer = sessions.load(identity, name).status()
            case _:
                sys.stderr.write(_USAGE.format(name=name) + "\n")
                return _WRONG_ARGUMENTS
    except UnknownSession as error:
        return _refuse(name, f"no session {error}", _NO_SESSION)
    except _Refused as error:
        return _refuse(name, str(error), error.code)
    except AgentFarmError as error:
        return _refuse(name, error.sentence, _FAILED)
    except OSError as error:
        return _refuse(name, str(error), _FAILED)
    sys.stdout.write(f"{answer}\n")
    return 0


def _spawn(name: str, sessions: Sessions, brief: Path, state: Path, prompt: str) -> str:
    """The id of a new session, or of the running one with this brief and state."""
    if not brief.is_file():
        raise _Refused(f"no brief {brief}", _WRONG_ARGUMENTS)
    _require_cli(name)
    with sessions.lock():
        known = sessions.living(name, brief, state)
        if known is not None:
            return known.id
        place = Path.cwd()
        base = commit_of(place)
        before = tuple(differing_files(place, base)) if base else ()
        chosen = get_adapter(EXECUTABLES[name]).new_conversation_id()
        session = sessions.create(Assignment(name, brief, state, place, base, before, chosen))
        _start(session, _with_brief(prompt, brief, state), "begin")
    return session.id


def _resume(name: str, sessions: Sessions, identity: str, state: Path, prompt: str) -> str:
    sessions.load(identity, name)
    _require_cli(name)
    with sessions.lock():
        if sessions.load(identity, name).is_alive():
            raise _Refused(f"session {identity} is still at work", _STILL_AT_WORK)
        session = sessions.load(identity, name)  # loaded again, because its last turn may have ended only now
        if session.told.conversation is None:
            raise _Refused(
                f"session {identity} ended before its conversation began; spawn a new one", _FAILED
            )
        _start(session.changed(state=state), prompt, "resume")
    return f"resumed {identity}"


def _start(session: AdapterSession, prompt: str, verb: str) -> None:
    state, brief = session.told.state, session.told.brief
    begin_state(state, brief)
    try:
        session.prompt_file.write_bytes(os.fsencode(prompt))
        _start_turn(session.changed(status="pending"), verb)
    except (OSError, AgentFarmError):
        end_state(state, brief, failed=True, artifacts=[])
        raise


def _start_turn(session: AdapterSession, verb: str) -> None:
    """Start it in the background, to outlive its caller; returns when it holds the session's lock."""
    ready, ready_end = os.pipe()
    words = ("-E", "-P", "-m", "agent_farm.runtimes.executables.turn", str(session.directory), verb)
    with open(session.log, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, *words, str(ready_end)],
            cwd=session.told.cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(ready_end,),
            start_new_session=True,
        )
    os.close(ready_end)
    told = os.read(ready, 16)
    os.close(ready)
    process.returncode = 0  # it is not our child any more, and not waited for
    if told != b"alive":
        raise OSError(f"the turn did not start; see {session.log}")


def _with_brief(prompt: str, brief: Path, state: Path) -> str:
    text = brief.read_text(encoding="utf-8", errors="surrogateescape")
    task = "" if prompt.strip() in text else f"{prompt}\n\n"  # a farm's brief contains it already
    return (
        f"{task}The brief of your task ({brief}):\n\n{text}\n\n"
        f"Keep {state} up to date as you go: a JSON object with lego_name, status, current_substep, "
        "completed_substeps, failure_count and artifacts."
    )


def _require_cli(name: str) -> None:
    if missing := get_adapter(EXECUTABLES[name]).program_problem(os.environ):
        raise _Refused(missing, _NOT_INSTALLED)


def _refuse(name: str, message: str, code: int) -> int:
    sys.stderr.write(f"{name}: {message}\n")
    return code

"""Starting the supervisor in the background, so that it outlives its caller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agent_farm.runtimes.executables.session_adapter.files import replace_json
from agent_farm.runtimes.executables.session_adapter.store import Session

_SUPERVISOR = Path(__file__).with_name("supervisor.py")


def start_supervisor(session: Session, *, resume: bool) -> None:
    """Returns when the supervisor holds the session's lock: from then on the session lives."""
    replace_json(session.outcome, {"status": "pending"})
    verb = "resume" if resume else "begin"
    ready, ready_end = os.pipe()
    with open(session.log, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), str(session.directory), verb, str(ready_end)],
            cwd=session.cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(ready_end,),
            start_new_session=True,
        )
    os.close(ready_end)
    told = os.read(ready, 16)
    os.close(ready)
    process.returncode = 0  # it is nobody's child from here on, and is not waited for
    if told != b"alive":
        raise OSError(f"the supervisor did not start; see {session.log}")

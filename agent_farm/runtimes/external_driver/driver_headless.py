"""An external session without a terminal: prints lines of JSON until it is completed or failed."""

from __future__ import annotations

import time

from agent_farm.runtimes.console.reporting import emit
from agent_farm.runtimes.external_driver.adapter_commands import AdapterFailed, DrivenSession

_POLL_SECONDS = 0.3


def run_headless(session: DrivenSession) -> int:
    try:
        if session.id:
            session.resume(session.prompt)
        else:
            session.spawn()
        emit({"type": "session", "id": session.id})
        while (status := session.status()) in ("pending", "active"):
            time.sleep(_POLL_SECONDS)
        if status == "failed":
            raise session.failure()
    except AdapterFailed as error:
        emit({"type": "failed", "kind": error.kind, "message": str(error), "state": session.load_state()})
        return 1
    emit({"type": "completed", "state": session.load_state()})
    return 0

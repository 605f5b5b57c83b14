"""An external session without a terminal: lines of JSON, until it is completed or failed."""

from __future__ import annotations

import json
import sys
import time

from agent_farm.runtimes.external_driver.contract import (
    AdapterFailed,
    Order,
    adopt_descendants,
    check_status,
    end_descendants,
    failed_session,
    load_state,
    resume,
    spawn,
)

POLL_SECONDS = 0.3


def run_headless(order: Order) -> int:
    adopt_descendants()
    try:
        return _run(order)
    except AdapterFailed as error:
        _emit({"type": "failed", "message": str(error), "state": load_state(order)})
        return 1
    finally:
        end_descendants()


def _run(order: Order) -> int:
    session = order.session
    if session:
        resume(order, session, order.prompt)
    else:
        session = spawn(order)
    _emit({"type": "session", "id": session})
    deadline = time.monotonic() + order.timeout_seconds
    while (status := check_status(order, session)) in ("pending", "active"):
        if time.monotonic() > deadline:
            minutes = order.timeout_seconds / 60
            message = f"ended after {minutes:g} minutes (timeout_minutes)"
            _emit({"type": "failed", "kind": "time-limit", "message": message, "state": load_state(order)})
            return 1
        time.sleep(POLL_SECONDS)
    if status == "failed":
        raise failed_session(order, session)
    _emit({"type": "completed", "state": load_state(order)})
    return 0


def _emit(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()

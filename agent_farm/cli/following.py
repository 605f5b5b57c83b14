"""`af sessions --follow`: a session as it goes on, wherever it runs, and at last its answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agent_farm.cli.output import answer_json, narrate, printable

if TYPE_CHECKING:
    from agent_farm.sessions.records import SessionLog

LOOK_SECONDS = 0.3


def follow_session(log: SessionLog, id: str, *, as_json: bool) -> int:
    """Like `af run` for a session that somebody else started; Ctrl-C ends the looking, not the session."""
    from agent_farm.cli.run import show_result
    from agent_farm.sessions.session import result_of

    record, state, told, said = log.get(id), "", 0, ""
    while True:
        if record["state"] != state:
            state = record["state"]
            narrate(f"session {record['id']} {state}")
        told = _tell_calls(record, told)
        if record["ended_at"] is not None:
            break
        if record["output"] and record["output"] != said:
            said = record["output"]
            narrate(printable(said))
        time.sleep(LOOK_SECONDS)
        record = log.get(record["id"])
    if as_json and record["state"] in ("cancelled", "interrupted"):
        answer_json({"result": result_of(record).to_json()})
        return 1
    return show_result(result_of(record), as_json)


def _tell_calls(record: dict[str, Any], told: int) -> int:
    """Those that were not told yet; a call is told when it is made, not when it is answered."""
    from agent_farm.cli.sessions import call_line

    calls = record["tool_calls"] or []
    for call in calls[told:]:
        narrate(f"  {call_line(call)}")
    return max(told, len(calls))

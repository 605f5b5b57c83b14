"""A session's tool calls: those that its runtime reported, and those that the server served."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_farm.runtimes.result import ToolCall
from agent_farm.sessions.database import Database, on_its_thread
from agent_farm.sessions.failures import readable

KEPT_CHARACTERS = 20_000


def served_calls(query: Callable[[str, tuple[str]], Iterable[Any]], caller: str) -> list[ToolCall]:
    """`query` is a database's, or the `execute` of an open transaction."""
    rows = query(
        "SELECT name, input, result, failed FROM served_calls WHERE caller = ? ORDER BY number", (caller,)
    )
    return [
        ToolCall(row["name"], json.loads(row["input"]), row["result"], bool(row["failed"])) for row in rows
    ]


@on_its_thread
def record_served_call(database: Database, caller: str, call: ToolCall, seconds: float) -> None:
    told = call_json(call)
    given = json.dumps(told["input"], allow_nan=False)
    result = None if call.result is None else told["result"][:KEPT_CHARACTERS]
    database.write(
        "INSERT INTO served_calls (caller, name, input, result, failed, at, seconds)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (caller, told["name"], given, result, int(call.is_error), time.time(), seconds),
    )


def call_json(call: ToolCall) -> dict[str, Any]:
    return {
        "name": readable(call.name),
        "input": readable(call.input),
        "result": readable(call.result),
        "is_error": call.is_error,
    }


def merge_calls(reported: Sequence[dict[str, Any]], served: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """Every call once: a served call that the runtime also reported is marked `served`, others are added."""
    calls = [dict(call) for call in reported]
    for call in map(call_json, served):
        twin = next((known for known in calls if "served" not in known and _same(known, call)), None)
        if twin is None:
            twin = call
            calls.append(twin)
        twin["served"] = True
    return calls


def _same(reported: Mapping[str, Any], served: Mapping[str, Any]) -> bool:
    """Runtimes prefix a server's tools: mcp__farm__state_set, mcp_farm-1_state_set, farm.state_set."""
    name = str(reported.get("name", ""))
    own: str = served["name"]
    matches = name == own or (name.endswith(own) and not name[-len(own) - 1].isalnum())
    return matches and dict(reported.get("input") or {}) == served["input"]

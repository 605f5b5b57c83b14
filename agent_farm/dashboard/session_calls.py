"""The butler's sessions and schedules: read, plotted, triggered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_farm.dashboard.desk import Desk
from agent_farm.dashboard.operations import Call, Operation
from agent_farm.dashboard.schemas import BUCKET, SCHEDULE, SESSION
from agent_farm.dashboard.usage import BUCKETS, usage_over_time
from agent_farm.dashboard.values import Field
from agent_farm.dashboard.views import FLAG, NUMBER, TEXT, list_of, object_schema
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.server.other_butlers import start_as, stop_any
from agent_farm.sessions.butlers import ScheduleEntry
from agent_farm.sessions.cron import CATCH_UP_SECONDS
from agent_farm.sessions.session import SESSION_STATES, SessionRequest
from agent_farm.sessions.trigger_sources import SCHEDULE_PREFIX
from agent_farm.settings import PERMISSIONS

Answer = Mapping[str, Any]


def sessions(desk: Desk, call: Call) -> Answer:
    query = call.query
    found = desk.sessions().find(
        butler=query["butler"],
        states=query["state"] or (),
        source=query["source"],
        since=query["since"],
        limit=int(query["limit"] or 100),
    )
    return {"sessions": found}


def session(desk: Desk, call: Call) -> Answer:
    return {"session": desk.sessions().get(call.path["id"])}


def usage(desk: Desk, call: Call) -> Answer:
    """Sums over equal spans of time; the page plots them."""
    seconds = float(call.query["seconds"] or 86400.0)
    now = desk.clock()
    found = desk.sessions().usage(since=now - seconds, span=seconds / BUCKETS)
    return {"seconds": seconds, "buckets": usage_over_time(found, now=now, seconds=seconds, count=BUCKETS)}


def trigger(desk: Desk, call: Call) -> Answer:
    """Handed to the farm's server, which is started when needed; the session outlives the page."""
    body = call.body
    request = SessionRequest(
        prompt=_require_prompt(body["prompt"]),
        context=body["context"],
        max_turns=int(body["max_turns"] or 20),
        runtime=body["runtime"],
        model=body["model"],
        permissions=body["permissions"],
        resumes=body["resume"],
    )
    return _start(desk, None, request)


def run_schedule(desk: Desk, call: Call) -> Answer:
    """Its prompt at once, where and as whom it runs when it is due; its due times stay as they are."""
    store = desk.schedules(call.body["butler"])
    chosen = store.get(call.path["name"])
    place = chosen.directory(desk.root) if chosen.cwd else None
    request = SessionRequest(
        prompt=chosen.prompt, cwd=str(place) if place else None, trigger_source=SCHEDULE_PREFIX + chosen.name
    )
    return _start(desk, store.butler, request)


def _start(desk: Desk, butler: str | None, request: SessionRequest) -> Answer:
    started = desk.wait_for(start_as(desk.running, butler, request))
    if not isinstance(started, str):
        raise AgentFarmError("The session was not accepted", why=started.error, hint="af sessions")
    return {"session_id": started}


def stop(desk: Desk, call: Call) -> Answer:
    return {"session": desk.wait_for(stop_any(desk.running, call.path["id"], "the dashboard"))}


def _require_prompt(prompt: str) -> str:
    if not prompt.strip():
        raise UsageError("The prompt is empty", hint='af trigger "…"')
    if "\0" in prompt:
        raise UsageError("The prompt contains NUL")
    return prompt


def schedules(desk: Desk, call: Call) -> Answer:
    from agent_farm.server.launching import running_server
    from agent_farm.sessions.agreement import schedule_json

    found = [
        schedule_json(desk.root, store.butler, entry)
        for store in desk.all_schedules()
        for entry in store.all()
    ]
    return {"schedules": found, "server_runs": running_server(desk.root) is not None}


def add_schedule(desk: Desk, call: Call) -> Answer:
    body = call.body
    late = CATCH_UP_SECONDS if body["late"] is None else body["late"]
    entry = ScheduleEntry(
        body["name"], body["cron"], body["prompt"], body["timezone"], body["cwd"], late, body["until"]
    )
    store = desk.schedules(body["butler"])
    made = store.create(entry)
    return {"schedule": {"butler": store.butler, **made.to_json()}}


def switch_schedule(desk: Desk, call: Call) -> Answer:
    store = desk.schedules(call.body["butler"])
    changed = store.update(call.path["name"], enabled=call.body["enabled"])
    return {"schedule": {"butler": store.butler, **changed.to_json()}}


def remove_schedule(desk: Desk, call: Call) -> Answer:
    desk.schedules(call.query["butler"]).delete(call.path["name"])
    return {"removed": call.path["name"]}


def history(desk: Desk, call: Call) -> Answer:
    store = desk.schedules(call.query["butler"])
    return {"fires": store.fires(store.get(call.path["name"]).name)}


_EARLIEST, _LATEST = 60, 400 * 86400
_BUTLER = Field("butler", text="whose it is; default: the farm's own")
_FIRE = object_schema({"due": NUMBER, "claimed_at": NUMBER, "outcome": TEXT})

SESSION_CALLS = (
    Operation(
        "GET", "/api/sessions", "list_sessions", "Headless sessions, newest first", sessions,
        {"sessions": list_of(SESSION)},
        query=(
            Field("state", "texts", "only in these states", choices=SESSION_STATES),
            Field("source", text="only from this trigger source, as in schedule:daily"),
            Field("butler"),
            Field("since", "number", "only created since, in seconds since the epoch", least=0),
            Field("limit", "whole", "default 100", least=1, most=10000),
        ),
    ),
    Operation(
        "GET", "/api/sessions/{id}", "get_session", "One session whole, with output and tool calls", session,
        {"session": SESSION},
    ),
    Operation(
        "POST", "/api/sessions", "trigger_session", "Hand a prompt to the farm's server", trigger,
        {"session_id": TEXT},
        body=(
            Field("prompt", required=True),
            Field("context", text="put before the prompt"),
            Field("max_turns", "whole", least=1, most=1000),
            Field("runtime"),
            Field("model"),
            Field("permissions", choices=PERMISSIONS),
            Field("resume", text="go on with the conversation of this session"),
        ),
    ),
    Operation(
        "POST", "/api/sessions/{id}/stop", "stop_session", "End a session, with every process it started",
        stop, {"session": SESSION}, body=(),
    ),
    Operation(
        "GET", "/api/usage", "get_usage", "Sessions, tokens and cost over time", usage,
        {"seconds": NUMBER, "buckets": list_of(BUCKET)},
        query=(Field("seconds", "number", "how far back; default a day", least=_EARLIEST, most=_LATEST),),
    ),
    Operation(
        "GET", "/api/schedules", "list_schedules", "All schedules, with when each is due next", schedules,
        {"schedules": list_of(SCHEDULE), "server_runs": FLAG},
    ),
    Operation(
        "POST", "/api/schedules", "add_schedule", "Run a prompt whenever a cron expression is due",
        add_schedule, {"schedule": SCHEDULE},
        body=(
            Field("name", required=True),
            Field("cron", text="five fields", required=True),
            Field("prompt", required=True),
            Field("timezone", text="as in Europe/Berlin"),
            Field("cwd", text="where to run, from the checkout's top; default: the butler's directory"),
            Field("late", "number", "made up within so many seconds; 0: however late", least=0),
            Field("until", text="the last day, as in 2027-03-31, or a time"),
            _BUTLER,
        ),
    ),
    Operation(
        "POST", "/api/schedules/{name}", "switch_schedule", "Enable or disable a schedule", switch_schedule,
        {"schedule": SCHEDULE}, body=(Field("enabled", "flag", required=True), _BUTLER),
    ),
    Operation(
        "POST", "/api/schedules/{name}/run", "run_schedule", "Run a schedule's prompt now, due or not",
        run_schedule, {"session_id": TEXT}, body=(_BUTLER,),
    ),
    Operation(
        "DELETE", "/api/schedules/{name}", "remove_schedule", "Remove a schedule", remove_schedule,
        {"removed": TEXT}, query=(_BUTLER,),
    ),
    Operation(
        "GET", "/api/schedules/{name}/history", "get_history", "When it was due, and what became of it",
        history, {"fires": list_of(_FIRE)}, query=(_BUTLER,),
    ),
)  # fmt: skip

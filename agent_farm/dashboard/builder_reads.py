"""What the API says of builders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_farm.builders.events import load_events
from agent_farm.dashboard.desk import Desk
from agent_farm.dashboard.operations import Call, Operation
from agent_farm.dashboard.schemas import BUILDER, EVENT
from agent_farm.dashboard.values import Field
from agent_farm.dashboard.views import (
    builder_json,
    event_json,
    list_of,
)
from agent_farm.farm.listing import list_builders

Answer = Mapping[str, Any]

_MOST_EVENTS = 1000


def builders(desk: Desk, call: Call) -> Answer:
    with_git = call.query["git"] is not False
    fresh = bool(call.query["fresh"])
    return {"builders": [builder_json(b) for b in list_builders(desk.farm(), with_git=with_git, fresh=fresh)]}


def builder(desk: Desk, call: Call) -> Answer:
    farm = desk.farm()
    record = desk.require(farm, call.path["id"])
    return {"builder": builder_json(list_builders(farm, [record.id])[0])}


def events(desk: Desk, call: Call) -> Answer:
    farm = desk.farm()
    record = desk.require(farm, call.path["id"])
    found = load_events(farm.run(record.id).events)
    return {"events": [event_json(event) for event in found[-_MOST_EVENTS:]]}


_ID = "/api/builders/{id}"

READS = (
    Operation(
        "GET", "/api/builders", "list_builders", "All builders, oldest first", builders,
        {"builders": list_of(BUILDER)},
        query=(
            Field("git", "flag", "false leaves git out, which is quicker"),
            Field("fresh", "flag", "wait for git however long it takes"),
        ),
    ),
    Operation("GET", _ID, "get_builder", "One builder", builder, {"builder": BUILDER}),
    Operation(
        "GET", f"{_ID}/events", "list_events", "The last events its launcher and runtime reported", events,
        {"events": list_of(EVENT)},
    ),
)  # fmt: skip

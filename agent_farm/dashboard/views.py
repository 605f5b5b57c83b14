"""Builders, events and removals as the API gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_farm.builders.events import Event, Usage
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.farm.git_state import GitState
from agent_farm.farm.listing import Builder


def builder_json(builder: Builder) -> dict[str, Any]:
    """As `af status --json` gives it, with the line that tells a person what it is for.

    `git.has_commits`: without a commit of its own, that all has landed says nothing.
    """
    document = {**builder.to_json(), "title": builder.record.title}
    if builder.git is not None:
        document["git"] = {**document["git"], "has_commits": builder.git.has_commits}
    return document


def joined_json(
    record: BuilderRecord, status: Status, git: GitState | None, usage: Usage | None
) -> dict[str, Any]:
    return builder_json(Builder(record, status, git, usage))


def event_json(event: Event) -> dict[str, Any]:
    return {
        "at": event.at,
        "run": event.run,
        "source": event.source,
        "event": event.event,
        "state": event.state,
        "reason": event.reason,
        "detail": event.detail,
    }


def object_schema(properties: Mapping[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
    }


def list_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(schema)}


TEXT = {"type": "string"}
MAYBE_TEXT = {"type": ["string", "null"]}
WHOLE = {"type": "integer"}
MAYBE_WHOLE = {"type": ["integer", "null"]}
NUMBER = {"type": "number"}
MAYBE_NUMBER = {"type": ["number", "null"]}
FLAG = {"type": "boolean"}
MAYBE_FLAG = {"type": ["boolean", "null"]}
ANYTHING: dict[str, Any] = {}

"""The OpenAPI description, made from the rows that the router is made from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agent_farm import __version__
from agent_farm.dashboard.operations import Operation
from agent_farm.dashboard.schemas import ERROR
from agent_farm.dashboard.views import WHOLE, object_schema

_ERRORS = {
    "400": "The request is off",
    "401": "Not logged in",
    "403": "It comes from another page",
    "404": "There is no such thing",
    "409": "Refused, because of how things are; the evidence says why",
    "413": "The body is too large",
    "421": "The Host is not a loopback name",
}


def describe(operations: Sequence[Operation]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agent-farm dashboard",
            "version": __version__,
            "description": "Everything the dashboard's page does. Send the login that"
            " POST /api/login gives for a ticket, or the architect's token that server.json names, as a"
            " bearer token; a WebSocket may offer it as the protocol `login.…` beside `agent-farm`.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {"architect": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"architect": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    answer = object_schema({"version": WHOLE, **operation.answers})
    description: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.text,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation)],
        "responses": {
            str(operation.status): {"description": "Done", "content": _json(answer)},
            **{code: _error(text) for code, text in _ERRORS.items()},
        },
    }
    if operation.body is not None:
        fields = operation.body
        schema = {
            "type": "object",
            "properties": {field.name: field.body_schema() for field in fields},
            "required": [field.name for field in fields if field.required],
            "additionalProperties": False,
        }
        description["requestBody"] = {"required": bool(schema["required"]), "content": _json(schema)}
    return description


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "in": "query", "required": field.required, "schema": field.schema()}
        for field in operation.query
    ]


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _error(text: str) -> dict[str, Any]:
    return {"description": text, "content": _json({"$ref": "#/components/schemas/Error"})}

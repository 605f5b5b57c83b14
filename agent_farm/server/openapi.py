"""The OpenAPI description of the API, derived from the table of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from agent_farm import __version__
from agent_farm.operations.operation import Operation

Schema = dict[str, Any]

_ABOUT = """Every verb of `af`: `GET` for what reads, `POST` for what changes something. Send the login that
POST /api/login gives for a ticket, or the architect's token that server.json names, as a bearer token; a
WebSocket may offer it as the protocol `login.…` beside `agent-farm`."""
_ERRORS = {
    "400": "The request is invalid",
    "401": "Not logged in",
    "403": "It comes from another page",
    "404": "Not found",
    "409": "Refused in the current state; the evidence says why",
    "413": "The body is too large",
    "421": "The Host is not a loopback name",
}


class _Error(msgspec.Struct):
    code: str
    what: str
    why: str | None
    hint: str | None
    evidence: list[str]
    consent: Annotated[
        str | None, msgspec.Meta(description="As `yes` it approves what `evidence` shows, and nothing else")
    ]


class Refusal(msgspec.Struct):
    version: int
    error: _Error


def describe(operations: Sequence[Operation[Any, Any]]) -> dict[str, Any]:
    structs = [Refusal, *(one for operation in operations for one in (operation.request, operation.answer))]
    references, schemas = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    refusal, *pairs = references
    paths = {
        f"/api/{operation.name}": _path(operation, request, answer, schemas, refusal)
        for operation, request, answer in zip(operations, pairs[::2], pairs[1::2], strict=True)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "agent-farm", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"architect": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"architect": []}],
    }


def _path(
    operation: Operation[Any, Any],
    request: Schema,
    answer: Schema,
    schemas: dict[str, Schema],
    refusal: Schema,
) -> Schema:
    answered = {"allOf": [{"type": "object", "properties": {"version": {"const": 1}}}, answer]}
    described = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.details,
        "responses": {
            "200": {"description": "Done", "content": _json(answered)},
            **{code: {"description": text, "content": _json(refusal)} for code, text in _ERRORS.items()},
        },
    }
    if operation.effect != "reads":
        return {"post": {**described, "requestBody": {"content": _json(request)}}}
    asked = schemas[request["$ref"].rpartition("/")[2]]
    required = asked.get("required", ())
    parameters = [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in asked["properties"].items()
    ]
    return {"get": {**described, "parameters": parameters}}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}

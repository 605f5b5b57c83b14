"""JSON schemas of requests and answers, for MCP, OpenAPI and the docs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from agent_farm.operations.operation import Answer, Request


def request_schema(request: type[Request], *, without: Collection[str] = ()) -> dict[str, Any]:
    """An object's schema; `without` fields that a door does not offer."""
    schema = _object(request)
    schema["properties"] = {name: of for name, of in schema["properties"].items() if name not in without}
    return {**schema, "additionalProperties": False}


def answer_schema(answer: type[Answer]) -> dict[str, Any]:
    schema = _object(answer)
    schema["properties"] = {"version": {"const": 1}, **schema["properties"]}
    return {**schema, "required": ["version", *schema.get("required", ())]}


def _object(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Its own schema first, those that it names under `$defs`."""
    (reference,), components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    own = dict(components.pop(reference["$ref"].rpartition("/")[2]))
    own.pop("title", None)
    return {**own, "$defs": components} if components else own

"""Reads requests from outside, or refuses them with an error that names the field; and describes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT

from agent_farm.errors import UsageError, nearest
from agent_farm.operations.operation import Answer, Operation, Request
from agent_farm.typed import make_known

R = TypeVar("R", bound=Request)
A = TypeVar("A", bound=Answer)

# Not compiled at start: valid requests never need them.
_PLACE = r"(?s)(.*?)(?: - at `\$\.?(.*?)`)?"
_UNKNOWN = r"Object contains unknown field `(.*)`"
_NO_CHOICE = r"Invalid enum value '(.*)'"
_MISSING = r"Object missing required field `(.*)`"


def read_request(operation: Operation[R, A], values: Mapping[str, Any], *, lax: bool = False) -> R:
    """A null value counts as not given, unless the field requires a value.

    `lax` accepts numbers written as text, as in a query.
    """
    required = _required(operation.request)
    given = {name: value for name, value in values.items() if value is not None or name in required}
    make_known(operation.request)
    try:
        return msgspec.convert(given, operation.request, strict=not lax)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"Invalid arguments for {operation.name}", why=_reason(str(error), operation.request)
        ) from None


def _required(request: type[Request]) -> set[str]:
    """Without `msgspec.structs.fields`, which evaluates the type of each field."""
    names, defaults = request.__struct_encode_fields__, request.__struct_defaults__
    with_default = zip(names[len(names) - len(defaults) :], defaults, strict=True)
    return {*names[: len(names) - len(defaults)], *(name for name, one in with_default if one is NODEFAULT)}


def _reason(text: str, request: type[Request]) -> str:
    match = re.fullmatch(_PLACE, text)
    what, place = match.groups() if match else (text, None)
    if unknown := re.fullmatch(_UNKNOWN, what):
        known = request.__struct_fields__
        close = nearest(unknown[1], known)
        return f"{unknown[1]} is unknown; " + (
            f"did you mean {close}?" if close else f"it takes {_list(known)}"
        )
    if missing := re.fullmatch(_MISSING, what):
        return f"{missing[1]} is missing"
    if place and (wrong := re.fullmatch(_NO_CHOICE, what)):
        known = _choices(request, place.partition("[")[0])
        close = nearest(wrong[1], known)
        return f"{place.partition('[')[0]}: no {wrong[1]}; " + (
            f"did you mean {close}?" if close else f"it takes {_list(known)}"
        )
    return f"{place}: {what[:1].lower()}{what[1:]}" if place else what


def _choices(request: type[Request], name: str) -> tuple[str, ...]:
    return tuple(str(value) for value in _values_of(_types(request)[name]))


def _values_of(of: msgspec.inspect.Type) -> Iterator[object]:
    if isinstance(of, msgspec.inspect.LiteralType):
        yield from of.values
    elif isinstance(of, msgspec.inspect.Metadata):
        yield from _values_of(of.type)
    elif isinstance(of, msgspec.inspect.VarTupleType):
        yield from _values_of(of.item_type)
    elif isinstance(of, msgspec.inspect.UnionType):
        for one in of.types:
            yield from _values_of(one)


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def list_fields(request: type[Request]) -> frozenset[str]:
    """Fields that take several values."""
    return frozenset(name for name, of in _types(request).items() if _is_list(of))


def _types(request: type[Request]) -> dict[str, msgspec.inspect.Type]:
    found = msgspec.inspect.type_info(request)
    assert isinstance(found, msgspec.inspect.StructType)
    return {field.name: field.type for field in found.fields}


def _is_list(of: msgspec.inspect.Type) -> bool:
    if isinstance(of, msgspec.inspect.Metadata):
        return _is_list(of.type)
    if isinstance(of, msgspec.inspect.UnionType):
        return any(map(_is_list, of.types))
    return isinstance(of, (msgspec.inspect.VarTupleType, msgspec.inspect.ListType))


def request_schema(request: type[Request], *, without: Collection[str] = ()) -> dict[str, Any]:
    """The schema of an object, `without` fields that a door does not offer."""
    schema = _object(request)
    schema["properties"] = {name: of for name, of in schema["properties"].items() if name not in without}
    return {**schema, "additionalProperties": False}


def answer_schema(answer: type[Answer]) -> dict[str, Any]:
    schema = _object(answer)
    schema["properties"] = {"version": {"const": 1}, **schema["properties"]}
    return {**schema, "required": ["version", *schema.get("required", ())]}


def _object(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The struct's own schema, with those that it refers to under `$defs`."""
    (reference,), components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    own = dict(components.pop(reference["$ref"].rpartition("/")[2]))
    own.pop("title", None)
    return {**own, "$defs": components} if components else own

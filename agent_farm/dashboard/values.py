"""What requests may hold: one description of a value checks it and documents it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent_farm.errors import UsageError

Kind = Literal["text", "number", "whole", "flag", "texts"]

_JSON_TYPES: Mapping[Kind, tuple[type, ...]] = {
    "text": (str,),
    "number": (int, float),
    "whole": (int,),
    "flag": (bool,),
    "texts": (list,),
}
_NAMES = {
    "text": "a string",
    "number": "a number",
    "whole": "a whole number",
    "flag": "true or false",
    "texts": "a list of strings",
}
_SCHEMAS: Mapping[Kind, Mapping[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "whole": {"type": "integer"},
    "flag": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
}


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a query or a body. What is absent, or null where it is not required, is None."""

    name: str
    kind: Kind = "text"
    text: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    def schema(self) -> dict[str, Any]:
        schema = dict(_SCHEMAS[self.kind])
        if self.choices:
            if self.kind == "texts":
                schema["items"] = {"type": "string", "enum": list(self.choices)}
            else:
                schema["enum"] = list(self.choices)
        if self.least is not None:
            schema["minimum"] = self.least
        if self.most is not None:
            schema["maximum"] = self.most
        if self.text:
            schema["description"] = self.text
        return schema

    def body_schema(self) -> dict[str, Any]:
        """In a body, what is not required may be null as well."""
        schema = self.schema()
        if self.required:
            return schema
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
        return {**schema, "type": [schema["type"], "null"]}


def check_body(fields: Sequence[Field], document: object) -> dict[str, Any]:
    """Every field's value, or a UsageError that names the first one that is off."""
    if not isinstance(document, dict):
        raise UsageError("The body must be a JSON object")
    known = {field.name for field in fields}
    unknown = sorted(set(document) - known)
    if unknown:
        raise UsageError(f"Unknown field {unknown[0]}", why=f"Known: {', '.join(sorted(known)) or 'none'}")
    return {field.name: _checked(field, document.get(field.name)) for field in fields}


def check_query(fields: Sequence[Field], given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    known = {field.name for field in fields}
    unknown = sorted(set(given) - known)
    if unknown:
        raise UsageError(
            f"Unknown parameter {unknown[0]}", why=f"Known: {', '.join(sorted(known)) or 'none'}"
        )
    return {field.name: _checked(field, _parsed(field, given.get(field.name, ()))) for field in fields}


def _parsed(field: Field, words: Sequence[str]) -> object:
    """A query holds strings only; what cannot be read stays one and is refused by the check."""
    if not words:
        return None
    if field.kind == "texts":
        return list(words)
    word = words[-1]
    if field.kind == "flag":
        return {"true": True, "false": False}.get(word, word)
    if field.kind in ("number", "whole"):
        try:
            return int(word) if field.kind == "whole" else float(word)
        except ValueError:
            return word
    return word


def _checked(field: Field, value: object) -> Any:
    if value is None:
        if field.required:
            raise UsageError(f"{field.name} is missing")
        return None
    wrong = not isinstance(value, _JSON_TYPES[field.kind]) or (
        isinstance(value, bool) and field.kind != "flag"
    )
    if wrong or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
        raise UsageError(f"{field.name} must be {_NAMES[field.kind]}")
    for word in value if isinstance(value, list) else [value]:
        if field.choices and word not in field.choices:
            raise UsageError(f"{field.name} must be one of {', '.join(field.choices)}")
    _require_range(field, value)
    return value


def _require_range(field: Field, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return
    if value != value or abs(value) > 2**53:  # NaN, or beyond what JSON numbers carry exactly
        raise UsageError(f"{field.name} is out of range")
    if field.least is not None and value < field.least:
        raise UsageError(f"{field.name} must be at least {field.least:g}")
    if field.most is not None and value > field.most:
        raise UsageError(f"{field.name} must be at most {field.most:g}")

"""docs/json.md: what every verb answers, printed from the table of operations, and what has no verb yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_farm.operations.operation import Operation
from agent_farm.operations.requests import answer_schema
from agent_farm.operations.table import load_all
from tools.all_commands import commands_of_verbs

Schema = Mapping[str, Any]

HEAD = """\
# JSON and exit codes

With `--json` a command prints one object on standard output, errors included. `version` is 1; fields may
be added within a version, never removed or changed. MCP and HTTP (`GET` or `POST /api/<verb>`) answer
with the same objects; there, `af config get` is `config_get` and `af land --status` is `land_status`.
A verb without a command is listed by its name. What each field means is [below](#fields).

"""
# The most fields of an object that is shown in a line; larger ones have a table of their own below.
MOST_FIELDS = 9
# Commands that no verb stands behind: what they print.
OTHERS = {
    "`af dash --no-browser`": '`{"version": 1, "address"}`',
    "an error of any command": '`{"version": 1,'
    ' "error": {"code", "what", "why", "hint", "evidence", "consent"}}`',
}
EXIT_CODES = """\
## Exit codes

| code | means |
| --- | --- |
| 0 | done |
| 1 | an expected failure |
| 2 | usage error |
| 3 | a bug; the message names the log |
| 4 | refused, because work would be lost |
| 5 | held, or not delivered |
| 124 | timed out |
| 130 | interrupted |
"""


def json_page() -> str:
    operations = list(load_all())
    typed = commands_of_verbs()
    names = {one.name: ", ".join(map("`{}`".format, typed.get(one.name, [one.name]))) for one in operations}
    shapes: dict[str, Schema] = {}
    rows = ["| command or verb | prints |", "| --- | --- |"]
    for operation in operations:
        schema = answer_schema(operation.answer)
        shapes |= schema.get("$defs", {})
        rows.append(f"| {names[operation.name]} | `{_form(schema, shapes)}` |")
    rows += [f"| {command} | {form} |" for command, form in OTHERS.items()]
    fields = [*_answers(operations, names), *(_shape(*one) for one in shapes.items())]
    return HEAD + "\n\n".join(["\n".join(rows), "## Fields", *filter(None, fields), EXIT_CODES])


def _form(schema: Schema, shapes: Mapping[str, Schema]) -> str:
    """`{"version": 1, "deliveries": [{"id", "outcome"}]}`"""
    fields = [_field(name, of, shapes) for name, of in schema["properties"].items()]
    return "{" + ", ".join(fields) + "}"


def _field(name: str, of: Schema, shapes: Mapping[str, Schema]) -> str:
    if "const" in of:
        return f'"{name}": {of["const"]}'
    if of.get("type") == "array":
        inner = _object_in(of["items"], shapes)
        return f'"{name}": [{_short(inner) if inner else _type(of["items"])}]'
    inner = _object_in(of, shapes)
    return f'"{name}": {_short(inner)}' if inner else f'"{name}"'


def _object_in(of: Schema, shapes: Mapping[str, Schema]) -> Schema | None:
    if "$ref" in of:
        return shapes[of["$ref"].rpartition("/")[2]]
    return next((found for one in of.get("anyOf", ()) if (found := _object_in(one, shapes))), None)


def _short(of: Schema) -> str:
    names = list(of["properties"])
    return "{" + ", ".join(f'"{name}"' for name in names) + "}" if len(names) <= MOST_FIELDS else "{…}"


def _answers(operations: list[Operation[Any, Any]], names: Mapping[str, str]) -> Iterator[str]:
    """What is said of the fields of answers themselves; most speak for themselves."""
    for operation in operations:
        schema = answer_schema(operation.answer)
        told = {name: of for name, of in schema["properties"].items() if of.get("description")}
        if told or schema.get("description"):
            yield _table(names[operation.name], schema.get("description"), told)


def _shape(name: str, of: Schema) -> str:
    """Nothing where the line above says it all."""
    fields = of["properties"]
    if len(fields) <= MOST_FIELDS and not any(one.get("description") for one in (of, *fields.values())):
        return ""
    return _table(name, of.get("description"), of["properties"])


def _table(title: str, text: str | None, fields: Mapping[str, Schema]) -> str:
    about = " ".join((text or "").split())
    rows = [
        f"| `{name}` | {_type(of)} | {_escaped(of.get('description', ''))} |" for name, of in fields.items()
    ]
    return "\n\n".join(
        part
        for part in (
            f"### {title}",
            about,
            "\n".join(["| field | holds | |", "| --- | --- | --- |", *rows]) if rows else "",
        )
        if part
    )


def _type(of: Schema) -> str:
    if "anyOf" in of:
        return " or ".join(_type(one) for one in of["anyOf"])
    if "$ref" in of:
        return str(of["$ref"].rpartition("/")[2])
    if "enum" in of:
        return ", ".join(f"`{value}`" for value in of["enum"])
    kinds = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    kind = of.get("type")
    if "prefixItems" in of:
        return " and ".join(map(_type, of["prefixItems"]))
    if kind == "array":
        return f"list of {_type(of['items'])}"
    return kinds.get(str(kind), str(kind)) if kind else "anything"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")

"""Parameters of a command, derived from the fields of a verb's request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from msgspec import inspect

from agent_farm.cli.durations import Timeout
from agent_farm.operations.operation import Operation
from agent_farm.operations.table import load

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from agent_farm.cli.options import Complete

# Fields that are arguments although they are not required.
_FIRST = ("id", "ids", "names", "worktrees")
_TIMEOUT = "timeout"
_LETTERS = {"yes": "-y"}
_METAVARS = {
    "butler": "NAME", "days": "N", "keep": "N", "limit": "N", "max_turns": "N", "model": "M", "port": "PORT",
    "resume": "ID", "runtime": "NAME", "timeout": "TIME", "timezone": "ZONE", "until": "DAY",
}  # fmt: skip


def offer(name: str) -> Complete:
    """What Tab offers, by its name in completing.py, which is loaded only when somebody presses Tab."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        offered: Complete = getattr(import_module("agent_farm.cli.completing"), name)
        return offered(ctx, param, incomplete)

    return complete


BY_FIELD: Mapping[str, Complete] = {
    "id": offer("complete_ids"),
    "ids": offer("complete_ids"),
    "butler": offer("complete_butlers"),
    "runtime": offer("complete_runtimes"),
    "source": offer("complete_session_sources"),
    "item": offer("complete_items"),
    "keys": offer("complete_keys"),
    "timezone": offer("complete_timezones"),
    "session_id": offer("complete_sessions"),
    "resume": offer("complete_sessions"),
}


def is_argument(field: inspect.Field) -> bool:
    """Whether the value is typed without an option name: required fields are."""
    return field.required or field.name in _FIRST


def option_words(name: str, word: str | None, letter: str | None) -> list[str]:
    letter = letter or _LETTERS.get(name)
    return [word or f"--{name.replace('_', '-')}", *([letter] if letter else [])]


def fields_of(operation: Operation[Any, Any]) -> Iterator[inspect.Field]:
    found = inspect.type_info(operation.request)
    assert isinstance(found, inspect.StructType)
    return iter(found.fields)


def option_of(
    verb: str, field: str, *words: str, metavar: str | None = None, complete: Complete | None = None
) -> click.Option:
    """An option for a field of another verb, under a name of the terminal's own."""
    (found,) = (one for one in fields_of(load(verb)) if one.name == field)
    return option(found, words, metavar, complete or BY_FIELD.get(field))


def option(
    field: inspect.Field,
    words: Sequence[str],
    metavar: str | None,
    complete: Complete | None,
) -> click.Option:
    of, help = _described(field.type)
    if isinstance(of, inspect.BoolType):
        return click.Option([*words, field.name], is_flag=True, help=help)
    many = isinstance(of, inspect.VarTupleType)
    if field.name == _TIMEOUT:
        help = f"{help.removesuffix('.')}; or with a unit, as in 5m."
    if type(field.default) in (int, float):
        help = f"{help.removesuffix('.')}; default: {field.default}."
    return click.Option(
        [*words, field.name],
        type=_type(of.item_type if isinstance(of, inspect.VarTupleType) else of, field.name),
        multiple=many,
        metavar=metavar or _METAVARS.get(field.name),
        help=f"{help} May be repeated." if many else help,
        shell_complete=complete,
    )


def argument(field: inspect.Field, metavar: str | None, complete: Complete | None) -> click.Argument:
    many = isinstance(_described(field.type)[0], inspect.VarTupleType)
    word = metavar or field.name.removesuffix("s").upper()
    return click.Argument(
        [field.name],
        metavar=(word if field.required else f"[{word}]") + ("..." if many else ""),
        nargs=-1 if many else 1,
        required=field.required,
        shell_complete=complete,
    )


def _described(of: inspect.Type) -> tuple[inspect.Type, str]:
    """A field's type without its description and without null, and the description as help text."""
    text = ""
    while isinstance(of, (inspect.Metadata, inspect.UnionType)):
        if isinstance(of, inspect.Metadata):
            text = str((of.extra_json_schema or {}).get("description", text))
            of = of.type
        else:
            of, *_ = (one for one in of.types if not isinstance(one, inspect.NoneType))
    return of, f"{text}." if text else ""


def _type(of: inspect.Type, name: str) -> click.ParamType[Any]:
    if name == _TIMEOUT:
        return Timeout()
    if isinstance(of, inspect.LiteralType):
        return click.Choice([str(value) for value in of.values])
    if isinstance(of, inspect.IntType):
        return click.INT if of.ge is None and of.le is None else click.IntRange(of.ge, of.le)
    if isinstance(of, inspect.FloatType):
        return click.FLOAT if of.ge is None and of.le is None else click.FloatRange(of.ge, of.le)
    return click.STRING

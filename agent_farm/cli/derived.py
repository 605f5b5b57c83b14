"""A verb's command: options from its request's fields, its answer as it comes or as one JSON object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct, inspect

from agent_farm.cli.completing import BY_FIELD
from agent_farm.cli.options import Complete, asker, complete_ids, current_directory, current_farm
from agent_farm.cli.output import answer_json, narrate, printable, show_error
from agent_farm.cli.progress import Progress
from agent_farm.errors import UsageError
from agent_farm.operations.operation import Answer, Context, Failure, Operation
from agent_farm.operations.requests import read_request
from agent_farm.operations.table import load

if TYPE_CHECKING:
    from agent_farm.farm.farm import Farm

_NAMES_BUILDERS = ("id", "ids")


class Way(Struct, frozen=True):
    """One verb at the terminal.

    `show` prints a part as it comes, `conclude` what is left to say when the answer is whole. `build` makes
    the request's fields of what was typed (`as_json` is there, too), where they are not the same. `open`
    finds the farm, given what was typed, where the verb wants another than the one here as it is. `before`
    may refuse, or do it in a way that only a terminal has: then it gives the exit code. `after` goes on from
    the answer.
    """

    verb: str
    show: Callable[[Any], None]
    conclude: Callable[[Any], None] | None = None
    build: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    open: Callable[[Mapping[str, Any]], Farm] | None = None
    before: Callable[[Typed], int | None] | None = None
    after: Callable[[Typed, Any], None] | None = None


class Typed(Struct, frozen=True):
    """One call of a command: what was typed, and what it asks of the verb."""

    values: Mapping[str, Any]
    operation: Operation[Any, Any]
    context: Context
    request: Any
    as_json: bool
    progress: Progress


def command_of(
    way: Way,
    *,
    name: str | None = None,
    help: str | None = None,
    others: Mapping[str, Way] | None = None,
    params: Mapping[str, click.Parameter | None] | None = None,
    also: Sequence[click.Parameter] = (),
    words: Mapping[str, str] | None = None,
    short: Mapping[str, str] | None = None,
    metavars: Mapping[str, str] | None = None,
    epilog: str | None = None,
    context_settings: dict[str, Any] | None = None,
) -> click.Command:
    """The command of a verb, called like it unless it has a `name`, told of in its words or in `help`.

    `params` takes the place of derived ones by field (None: there is none), `also` are the terminal's own;
    `words`, `short` and `metavars` name what is derived otherwise than after its field.
    An option named in `others` has another verb done instead.
    """
    operation, own = load(way.verb), params or {}

    def named(field: inspect.Field) -> click.Parameter:
        word = (words or {}).get(field.name) or f"--{field.name.replace('_', '-')}"
        letter = (short or {}).get(field.name)
        return _parameter(field, [word, *([letter] if letter else [])], (metavars or {}).get(field.name))

    derived = [own[field.name] if field.name in own else named(field) for field in fields_of(operation)]
    many = "ids" in operation.request.__struct_fields__
    filters = [_filter(word, help) for word, help in _FILTERS.items()] if many else []
    shown = [*(param for param in derived if param is not None), *also]

    def carry_out(as_json: bool, **values: Any) -> int:
        given = {str(param.name): param for param in shown if _is_given(param, values)}
        asked = [name for name in others or () if name in given]
        if len(asked) > 1:
            raise _not_together(given[asked[0]], given[asked[1]])
        option = asked[0] if asked else None
        chosen = (others or {})[option] if option else way
        verb = load(chosen.verb)
        if option and not chosen.build:
            _require_together(verb, operation, given, option)
        fields = chosen.build({**values, "as_json": as_json}) if chosen.build else _known(verb, given, values)
        try:
            request = read_request(verb, fields)
        except UsageError as error:
            error.hint = f"{click.get_current_context().command_path} --help"
            raise
        progress = Progress()
        context = context_of(verb, partial(chosen.open, values) if chosen.open else None, progress)
        return _carry_out(Typed(values, verb, context, request, as_json, progress), chosen)

    return _Command(
        name or way.verb,
        context_settings=context_settings,
        params=[*shown, *filters, _json()],
        callback=carry_out,
        help=help or operation.text,
        epilog=epilog,
    )


_FILTERS = {
    "needs-you": "All that need you, instead of their ids.",
    "idle": "All whose turn has ended, instead of their ids.",
    "landed": "All whose work has landed, instead of their ids.",
}


def _filter(word: str, help: str) -> click.Option:
    return click.Option([f"--{word}", _filter_name(word)], is_flag=True, expose_value=False, help=help)


def _filter_name(word: str) -> str:
    return f"all_{word.replace('-', '_')}"


class _Command(click.Command):
    """An option that takes one value is refused when it is given two: the last one would win unsaid.

    A filter stands for the first id.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            given, _, order = self.make_parser(ctx).parse_args(list(args))
            for param in set(order):
                takes_one = isinstance(param, click.Option) and not (param.is_flag or param.multiple)
                if takes_one and order.count(param) > 1:
                    raise UsageError(f"{param.opts[0]} is given {order.count(param)} times")
            args = [*(f"@{word}" for word in _FILTERS if given.get(_filter_name(word))), *args]
        return super().parse_args(ctx, args)


def _is_given(param: click.Parameter, values: Mapping[str, Any]) -> bool:
    value = values[str(param.name)]
    return value is not None and value is not False and value != ()


def _known(operation: Operation[Any, Any], given: Iterable[str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in given if name in operation.request.__struct_fields__}


def _require_together(
    verb: Operation[Any, Any], command: Operation[Any, Any], given: Mapping[str, click.Parameter], option: str
) -> None:
    """What was typed belongs to the verb that the option stands for, or to the terminal."""
    for name in set(command.request.__struct_fields__) - set(verb.request.__struct_fields__):
        if name in given:
            raise _not_together(given[option], given[name])


def _not_together(one: click.Parameter, other: click.Parameter) -> UsageError:
    hint = f"{click.get_current_context().command_path} --help"
    return UsageError(f"{_word(one)} does not go with {_word(other)}", hint=hint)


def _word(param: click.Parameter) -> str:
    """As a person has typed it."""
    return param.opts[0] if isinstance(param, click.Option) else str(param.metavar).strip("[].")


def option_of(
    verb: str, field: str, word: str, metavar: str | None = None, complete: Complete | None = None
) -> click.Option:
    """The option of another verb's field, under a word of the terminal's own."""
    (found,) = (one for one in fields_of(load(verb)) if one.name == field)
    of, help = _described(found.type)
    if isinstance(of, inspect.BoolType):
        return click.Option([word, field], is_flag=True, help=help)
    offer = complete or BY_FIELD.get(field)
    return click.Option([word, field], type=_type(of), metavar=metavar, help=help, shell_complete=offer)


def context_of(
    operation: Operation[Any, Any],
    open: Callable[[], Farm] | None = None,
    progress: Progress | None = None,
) -> Context:
    """The person at this terminal."""
    shown = progress or Progress()

    def tell(text: str) -> None:
        shown.clear()
        narrate(printable(text))

    here = partial(current_farm, tolerant=operation.tolerant, tell=tell, step=shown.step)
    return Context(
        cache(open or here),
        ask=asker(),
        naming_agrees=True,
        tell=tell,
        directory=current_directory(),
        environ=os.environ,
        inside=os.environ.get("AF_SESSION"),
    )


def _carry_out(typed: Typed, way: Way) -> int:
    if way.before is not None:
        code = way.before(typed)
        if code is not None:
            return code
    operation, parts = typed.operation, list[Any]()
    try:
        for part in operation.run(typed.context, typed.request):
            parts.append(part)
            typed.progress.clear()
            if isinstance(part, Failure):
                show_error(part.error, as_json=False)  # the others go on
            elif not typed.as_json:
                way.show(part)
    except KeyboardInterrupt:
        if typed.as_json and parts:  # what became of some is not lost
            _answer(operation.collect(parts))
        raise
    finally:
        typed.progress.clear()
    found: Answer = operation.collect(parts)
    if typed.as_json:
        _answer(found)
    elif way.conclude is not None:
        way.conclude(found)
    if way.after is not None:
        way.after(typed, found)
    return found.exit_code


def _answer(found: Answer) -> None:
    answer_json(msgspec.to_builtins(found, str_keys=True))


def fields_of(operation: Operation[Any, Any]) -> Iterator[inspect.Field]:
    found = inspect.type_info(operation.request)
    assert isinstance(found, inspect.StructType)
    return iter(found.fields)


def _json() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object instead of text.")


def _parameter(field: inspect.Field, words: Sequence[str], metavar: str | None) -> click.Parameter:
    of, help = _described(field.type)
    if field.name in _NAMES_BUILDERS:
        return _builders(field, many=field.name == "ids")
    if isinstance(of, inspect.BoolType):
        return click.Option([*words, field.name], is_flag=True, help=help)
    many = isinstance(of, inspect.VarTupleType)
    return click.Option(
        [*words, field.name],
        type=_type(of.item_type if isinstance(of, inspect.VarTupleType) else of),
        multiple=many,
        required=field.required,
        metavar=metavar,
        help=help,
        shell_complete=BY_FIELD.get(field.name),
        show_default=str(field.default) if type(field.default) in (int, float) else None,
    )


def _builders(field: inspect.Field, *, many: bool) -> click.Argument:
    word = field.name.removesuffix("s").upper()
    return click.Argument(
        [field.name],
        metavar=(word if field.required else f"[{word}]") + ("..." if many else ""),
        nargs=-1 if many else 1,
        required=field.required,
        shell_complete=complete_ids,
    )


def _described(of: inspect.Type) -> tuple[inspect.Type, str]:
    """A field's type without its description and without null, and the description as help."""
    text = ""
    while isinstance(of, (inspect.Metadata, inspect.UnionType)):
        if isinstance(of, inspect.Metadata):
            text = str((of.extra_json_schema or {}).get("description", text))
            of = of.type
        else:
            (of,) = (one for one in of.types if not isinstance(one, inspect.NoneType))
    return of, f"{text}." if text else ""


def _type(of: inspect.Type) -> click.ParamType[Any]:
    if isinstance(of, inspect.LiteralType):
        return click.Choice([str(value) for value in of.values])
    if isinstance(of, inspect.IntType):
        return click.INT if of.ge is None and of.le is None else click.IntRange(of.ge, of.le)
    if isinstance(of, inspect.FloatType):
        return click.FLOAT if of.ge is None and of.le is None else click.FloatRange(of.ge, of.le)
    return click.STRING

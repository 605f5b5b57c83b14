"""A verb as a command: options from its request's fields, its answer as lines or as one JSON object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct, inspect

from agent_farm.cli.fields import BY_FIELD, argument, fields_of, is_argument, option, option_words
from agent_farm.cli.options import asker, current_directory, current_farm, json_option
from agent_farm.cli.output import answer_json, narrate, printable, show_error
from agent_farm.cli.progress import Progress
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.operations.operation import Answer, Context, Failure, Operation
from agent_farm.operations.requests import read_request
from agent_farm.operations.table import load

if TYPE_CHECKING:
    from agent_farm.cli.options import Complete


class Way(Struct, frozen=True):
    """How one verb looks at the terminal.

    `show` prints a part of the answer as it comes, `conclude` what is left to say once the answer is
    complete. `build` returns the fields of the request that differ from what was typed under their name
    (`as_json` is among its values too). `open` opens the farm, where the verb needs something other than the
    farm here. `before` may refuse, or handle the call in a way that only a terminal can: then it returns the
    exit code. `after` continues with the answer.
    """

    verb: str
    show: Callable[[Any], None]
    conclude: Callable[[Any], None] | None = None
    build: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    open: Callable[[Mapping[str, Any]], Farm] | None = None
    before: Callable[[Typed], int | None] | None = None
    after: Callable[[Typed, Any], None] | None = None


class Typed(Struct, frozen=True):
    """One call of a command: what was typed, and what it asks the verb for."""

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
    complete: Mapping[str, Complete] | None = None,
    epilog: str | None = None,
    context_settings: dict[str, Any] | None = None,
) -> click.Command:
    """The command of a verb, named by its last word or by `name`, described by its summary or by `help`.

    Each field becomes a parameter, as in `fields.py`; `words`, `short` and `metavars` change its names, and
    errors call it by `words`. `complete` says what Tab offers. `params` replaces derived parameters (None:
    leaves one out), `also` adds the terminal's own. An option named in `others` runs another verb instead.
    """
    operation, own, offers = load(way.verb), params or {}, {**BY_FIELD, **(complete or {})}

    def derived(field: inspect.Field) -> click.Parameter:
        metavar, offer = (metavars or {}).get(field.name), offers.get(field.name)
        if is_argument(field):
            return argument(field, metavar, offer)
        word, letter = (words or {}).get(field.name), (short or {}).get(field.name)
        return option(field, option_words(field.name, word, letter), metavar, offer)

    found = [own[field.name] if field.name in own else derived(field) for field in fields_of(operation)]
    shown = [*(param for param in found if param is not None), *also]
    many = "ids" in operation.request.__struct_fields__
    filters = [_filter(word, help) for word, help in _FILTERS.items()] if many else []
    return VerbCommand(
        name or way.verb.rpartition("_")[2],
        ways=_ways(way, others or {}, shown),
        context_settings=context_settings,
        params=[*shown, *filters, json_option()],
        callback=partial(_in_own_words, words or {}, partial(_called, way, others or {}, shown)),
        help=help or operation.text,
        epilog=epilog,
    )


def _ways(
    way: Way, others: Mapping[str, Way], params: Sequence[click.Parameter]
) -> Iterator[tuple[str, click.Parameter | None]]:
    yield way.verb, None
    for name, other in others.items():
        yield other.verb, next(param for param in params if param.name == name)


def _in_own_words(words: Mapping[str, str], call: Callable[..., int], /, **values: Any) -> int:
    """An error of the verb names its fields: those that have another name here get it."""
    try:
        return call(**values)
    except AgentFarmError as error:
        if words:
            from agent_farm.operations.field_words import in_words

            in_words(error, words, words.__getitem__)
        raise


def _called(
    way: Way, others: Mapping[str, Way], params: Sequence[click.Parameter], *, as_json: bool, **values: Any
) -> int:
    given = {str(param.name): param for param in params if _is_given(param, values)}
    chosen = _chosen(way, others, load(way.verb), given)
    verb = load(chosen.verb)
    fields = _known(verb, given, values)
    if chosen.build:
        fields |= chosen.build({**values, "as_json": as_json})
    progress = Progress()
    request = _request(verb, fields)
    context = context_of(verb, partial(chosen.open, values) if chosen.open else None, progress)
    return _carry_out(Typed(values, verb, context, request, as_json, progress), chosen)


def _chosen(
    way: Way, others: Mapping[str, Way], command: Operation[Any, Any], given: Mapping[str, click.Parameter]
) -> Way:
    """The command's own verb, or that of the one option that stands for another. Whatever else was typed
    has to belong to that verb, or to the terminal."""
    asked = [name for name in others if name in given]
    if not asked:
        return way
    if len(asked) > 1:
        raise _not_together(given[asked[0]], given[asked[1]])
    chosen = others[asked[0]]
    if not chosen.build:
        fields = load(chosen.verb).request.__struct_fields__
        for name in set(command.request.__struct_fields__) - set(fields):
            if name in given:
                raise _not_together(given[asked[0]], given[name])
    return chosen


def _request(verb: Operation[Any, Any], fields: Mapping[str, Any]) -> Any:
    try:
        return read_request(verb, fields)
    except UsageError as error:
        error.hint = f"{click.get_current_context().command_path} --help"
        raise


_FILTERS = {
    "needs-you": "All builders that need you, instead of ids.",
    "idle": "All builders whose turn has ended, instead of ids.",
    "landed": "All builders whose work has landed, instead of ids.",
}


def _filter(word: str, help: str) -> click.Option:
    return click.Option([f"--{word}", _filter_name(word)], is_flag=True, expose_value=False, help=help)


def _filter_name(word: str) -> str:
    return f"all_{word.replace('-', '_')}"


class VerbCommand(click.Command):
    """Refuses an option with one value if it is given twice: otherwise the last one would win silently.

    A filter takes the place of the first id. `ways` are the verbs that it carries out, each with the
    parameter that asks for it, if it is not what the command does without one.
    """

    def __init__(
        self, name: str, *, ways: Iterable[tuple[str, click.Parameter | None]], **settings: Any
    ) -> None:
        super().__init__(name, **settings)
        self.ways = tuple(ways)

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


def _not_together(one: click.Parameter, other: click.Parameter) -> UsageError:
    hint = f"{click.get_current_context().command_path} --help"
    return UsageError(f"{word_of(one)} cannot be combined with {word_of(other)}", hint=hint)


def word_of(param: click.Parameter) -> str:
    """The parameter as a person types it."""
    return param.opts[0] if isinstance(param, click.Option) else str(param.metavar).strip("[].")


def context_of(
    operation: Operation[Any, Any],
    open: Callable[[], Farm] | None = None,
    progress: Progress | None = None,
) -> Context:
    """A call by the person at this terminal."""
    shown = progress or Progress()

    def tell(text: str) -> None:
        with shown.aside():
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
        for part in operation.parts(typed.context, typed.request):
            parts.append(part)
            with typed.progress.aside():
                if isinstance(part, Failure):
                    show_error(part.error, as_json=False)  # the others go on
                elif not typed.as_json:
                    way.show(part)
    except KeyboardInterrupt:
        if typed.as_json and parts:  # the results that there are must not be lost
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

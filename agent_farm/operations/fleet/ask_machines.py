"""Asks machines to run a verb: one call to each, and the parts that `run` yielded there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct, structs

from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.fleet.book import Book
from agent_farm.fleet.calling import address_of, call, error_of_machine, hint_of_machine
from agent_farm.git.asking import as_asked
from agent_farm.launch import as_command
from agent_farm.operations.fleet.rows_elsewhere import answer_of
from agent_farm.operations.operation import Context, Failure, Operation, only, with_parts
from agent_farm.operations.shown import BuilderShown
from agent_farm.runtimes import get_adapter
from agent_farm.ssh.ssh_url import Address

_TYPING = ("send", "send_keys", "message_builder")
_WITH_KEYS = ("resume", "setup")  # what these start gets a builder's environment
_WAITING_SECONDS = 24 * 3600.0
_STARTING_SECONDS = 600.0
_LOOK_SECONDS = 15.0
_LATE_SECONDS = 5.0  # for a machine that has not answered before

Verb = Operation[Any, Any]


def with_ids(request: Any, ids: Sequence[str]) -> Any:
    if "ids" in request.__struct_fields__:
        return structs.replace(request, ids=tuple(ids))
    return structs.replace(request, id=ids[0])


def ask_each(
    verb: Verb, context: Context, book: Book, request: Any, ids: Sequence[str], *, alone: bool = True
) -> Iterator[Any]:
    """One call to each machine; a failure does not stop the others.

    With a single builder, and nothing else to report (`alone`), its error is raised.
    """
    hosts: dict[str, list[str]] = {}
    for id in ids:
        hosts.setdefault(book.builder(id).host, []).append(id)
    questions = {
        host: partial(ask_machine, verb, context, book, with_ids(request, own), host, own)
        for host, own in hosts.items()
    }
    for host, answer in _answers(verb, questions):
        if not isinstance(answer, AgentFarmError):
            yield from _parts(verb, answer)
        elif isinstance(answer, Unreachable) and verb.name in _TYPING:
            yield from _not_confirmed(hosts[host], answer)
        elif (len(hosts) == 1 and verb.collect is only) or (alone and len(ids) == 1):
            raise answer
        else:
            yield from _failed(verb, hosts[host], answer)


def _answers(
    verb: Verb, questions: Mapping[str, Callable[[], Any]]
) -> Iterator[tuple[str, Any | AgentFarmError]]:
    """All at once; but calls that wait run one after another, so that an interrupt ends them immediately."""
    if len(questions) > 1 and not verb.waits:
        yield from as_asked(questions, workers=len(questions))
        return
    for host, question in questions.items():
        try:
            answer = question()
        except AgentFarmError as error:
            yield host, error
        else:
            yield host, answer


def _not_confirmed(ids: Sequence[str], error: Unreachable) -> Iterator[Any]:
    """What a machine types after its connection broke is typed all the same, and nobody hears of it."""
    from agent_farm.operations.send import Delivered

    for id in ids:
        if error.began:
            reason, hint = f"it may have been typed: {error.sentence}", as_command("af", "capture", id)
            yield Delivered(id, "failed", reason, hints=(hint,))
        else:
            yield Delivered(id, "held", error.sentence, hints=(error.hint,) if error.hint else ())


def _failed(verb: Verb, ids: Sequence[str], error: AgentFarmError) -> Iterator[Any]:
    if verb.name in _TYPING:
        from agent_farm.operations.send import Delivered

        yield from (Delivered(id, "failed", error.sentence) for id in ids)
    else:
        yield from (Failure.of(id, error) for id in ids)


def ask_machine(
    verb: Verb, context: Context, book: Book, request: Any, host: str, ids: Collection[str]
) -> Any:
    """The machine's answer; refused if it names any other builder than these."""
    seconds = _STARTING_SECONDS
    if verb.pool == "look":
        machine = book.machine(host)
        seconds = _LATE_SECONDS if machine.is_late or machine.problem else _LOOK_SECONDS
    elif verb.waits:
        seconds = _WAITING_SECONDS if request.timeout is None else request.timeout + _STARTING_SECONDS
    environment = keys_of(context, book.builders[request.id].runtime) if verb.name in _WITH_KEYS else {}
    document = call(
        book,
        host,
        verb.name,
        fields_given(request),
        environment=environment,
        seconds=seconds,
        tell=context.tell,
    )
    answer = answer_of(verb.answer, document, host)
    told = {id for id in _ids_in(answer) if id not in ids}
    if told:
        raise Unreachable(f"{host} answered about {sorted(told)[0]!r:.60}, which it was not asked about")
    return with_parts(answer, partial(_as_here, address_of(book.machine(host))))


def keys_of(context: Context, runtime: str | None) -> dict[str, str]:
    """The variables of the caller that a builder of that runtime would get here: its keys, and env.pass."""
    names = tuple(context.farm.settings.agreed("env.pass"))
    if runtime is not None:
        with suppress(ValueError):  # a runtime known only there
            cli = get_adapter(runtime, context.farm.root).cli
            names = (*names, *cli.own_variables(context.environ, None))
    return {name: context.environ[name] for name in names if context.environ.get(name)}


def fields_given(request: Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(request)
    return {name: value for name, value in found.items() if value is not None}


def _ids_in(answer: Any) -> Iterator[str]:
    if isinstance(answer, str):
        yield answer
    elif isinstance(getattr(answer, "id", None), str):
        yield answer.id
    elif isinstance(answer, Struct):
        for name in answer.__struct_fields__:
            value = getattr(answer, name)
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, Struct) or (isinstance(one, str) and isinstance(value, tuple)):
                    yield from _ids_in(one)


def _as_here(address: Address, part: Any) -> Any:
    """The part with its machine: builders get their host, failures become errors of that machine."""
    if isinstance(part, BuilderShown):
        return structs.replace(part, host=address.host)
    if isinstance(part, Failure):
        return Failure.of(part.id, error_of_machine(address, msgspec.to_builtins(part)))
    if hints := getattr(part, "hints", ()):
        return structs.replace(part, hints=tuple(hint_of_machine(address, hint) for hint in hints))
    return part


def _parts(verb: Verb, answer: Any) -> Iterator[Any]:
    """The parts that `run` yielded there."""
    if verb.collect is only:
        yield answer
        return
    for name in answer.__struct_fields__:
        yield from getattr(answer, name)

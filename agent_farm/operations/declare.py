"""A verb is declared where it is carried out.

    @reads("Show one session whole", who=SESSIONS)
    def sessions_get(context: Context, request: SessionsGet) -> FoundSession: ...

Its name is the function's, its request and its answer are those of the signature. Where the answer is made of
parts that come one by one, its type is that of what collects them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, get_type_hints

from agent_farm.operations.operation import Answer, Context, Effect, Operation, Request, single
from agent_farm.operations.served import ask

R = TypeVar("R", bound=Request)
A = TypeVar("A", bound=Answer)


class Declares(Protocol):
    def __call__(self, run: Callable[[Context, R], A], /) -> Operation[R, A]: ...


class DeclaresParts(Protocol[A]):
    def __call__(self, run: Callable[[Context, R], Iterator[Any]], /) -> Operation[R, A]: ...


class Serves(Protocol):
    def __call__(self, serve: Callable[[Context, R], Awaitable[A]], /) -> Operation[R, A]: ...


def reads(summary: str, *, tolerant: bool = True, pool: str = "look", **more: Any) -> Declares:
    """It only looks."""
    return _declares(summary, effect="reads", tolerant=tolerant, pool=pool, **more)


def acts(summary: str, *, effect: Effect = "changes", **more: Any) -> Declares:
    """It changes something."""
    return _declares(summary, effect=effect, **more)


def in_parts(
    summary: str, collect: Callable[[Sequence[Any]], A], *, effect: Effect, **more: Any
) -> DeclaresParts[A]:
    """Each part is yielded as it comes; `collect` makes the answer from all."""
    answer = get_type_hints(collect)["return"]

    def declare(run: Callable[[Context, R], Iterator[Any]]) -> Operation[R, A]:
        request = get_type_hints(run)["request"]
        return Operation(_name(run), summary, request, answer, run, collect, effect=effect, **more)

    return declare


def served(
    summary: str,
    *,
    prepare: Callable[[Context, Any], Any] = lambda context, request: request,
    interrupted: Callable[[Context, Any], None] = lambda context, request: None,
    **more: Any,
) -> Serves:
    """Only the farm's server carries it out: asked anywhere else, it is taken there.

    `prepare` is done where the caller is, who may be a person that can be asked; `interrupted` as well, when
    that person ends the wait for the answer.
    """

    def declare(serve: Callable[[Context, R], Awaitable[A]]) -> Operation[R, A]:
        name, (request, answer) = serve.__name__, _shapes(serve)

        def run(context: Context, asked: R) -> Iterator[A]:
            wanted = prepare(context, asked)
            try:
                yield ask(context, name, wanted, answer)
            except KeyboardInterrupt:
                interrupted(context, wanted)
                raise

        return Operation(name, summary, request, answer, run, serve=serve, **more)

    return declare


def _declares(summary: str, **more: Any) -> Declares:
    def declare(run: Callable[[Context, R], A]) -> Operation[R, A]:
        return Operation(_name(run), summary, *_shapes(run), single(run), **more)

    return declare


def _name(function: Callable[..., Any]) -> str:
    """A field named like a Python keyword ends in an underscore there."""
    return function.__name__.rstrip("_")


def _shapes(function: Callable[..., Any]) -> tuple[type[Any], type[Any]]:
    """Of its request and its answer."""
    told = get_type_hints(function)
    return told["request"], told["return"]

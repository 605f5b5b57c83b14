"""Declares a verb at the function that carries it out.

    @reads("Show one session whole", who=SESSIONS)
    def sessions_get(context: Context, request: SessionsGet) -> FoundSession: ...

The verb has the function's name; request and answer are the types in its signature. If the function yields
parts, the answer is what `collect` returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from agent_farm.operations.operation import Answer, Context, Effect, Operation, Request, single
from agent_farm.operations.served import ask

R = TypeVar("R", bound=Request)
A = TypeVar("A", bound=Answer)

if TYPE_CHECKING:  # defining a Protocol takes 0.1 ms
    from typing import Protocol

    class Declares(Protocol):
        def __call__(self, run: Callable[[Context, R], A], /) -> Operation[R, A]: ...

    class DeclaresParts(Protocol[A]):
        def __call__(self, run: Callable[[Context, R], Iterator[Any]], /) -> Operation[R, A]: ...

    class Serves(Protocol):
        def __call__(self, serve: Callable[[Context, R], Awaitable[A]], /) -> Operation[R, A]: ...


def reads(summary: str, *, tolerant: bool = True, pool: str = "look", **more: Any) -> Declares:
    """Declare a verb that only looks."""
    return _declares(summary, effect="reads", tolerant=tolerant, pool=pool, **more)


def acts(summary: str, *, effect: Effect = "changes", **more: Any) -> Declares:
    """Declare a verb that changes something."""
    return _declares(summary, effect=effect, **more)


def in_parts(
    summary: str, collect: Callable[[Sequence[Any]], A], *, effect: Effect, **more: Any
) -> DeclaresParts[A]:
    """Declare a verb whose parts are yielded as they come; `collect` makes the answer from all of them."""
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
    """Declare a verb that only the farm's server carries out; elsewhere, the request is sent there.

    `prepare` runs where the caller is, who may be a person that can be asked; so does `interrupted`, when
    that person stops waiting for the answer.
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
    """The verb's name: a function whose name would be a Python keyword ends in an underscore."""
    return function.__name__.rstrip("_")


def _shapes(function: Callable[..., Any]) -> tuple[type[Any], type[Any]]:
    """The types of its request and its answer."""
    told = get_type_hints(function)
    return told["request"], told["return"]

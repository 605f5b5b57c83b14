"""Operation: a verb as every door offers it.

A request is a frozen Struct whose fields carry their own descriptions: they become options in the terminal,
parameters of an MCP tool, and the body of an HTTP request. `run` yields parts as they come (one for each
builder, for example); `collect` makes them the answer, whose JSON is the same at every door.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import msgspec

from agent_farm.consent import Ask
from agent_farm.errors import AgentFarmError, error_of
from agent_farm.farm.farm import Farm

if TYPE_CHECKING:
    from agent_farm.sessions.running_butlers import RunningButlers

Effect = Literal["reads", "changes", "destroys"]
CallerKind = Literal["architect", "session", "builder"]
Door = Literal["mcp", "http"]
Elsewhere = Literal["refused", "there", "home", "fetched"]

ARCHITECT: frozenset[CallerKind] = frozenset({"architect"})
SESSIONS: frozenset[CallerKind] = frozenset({"architect", "session"})
EVERYBODY: frozenset[CallerKind] = frozenset({"architect", "session", "builder"})
DOORS: frozenset[Door] = frozenset({"mcp", "http"})
TERMINAL_ALONE: frozenset[Door] = frozenset()


# Subclasses inherit this at run time; for mypy each would have to repeat it.
_FROZEN: Any = {"frozen": True}


class Request(msgspec.Struct, forbid_unknown_fields=True, **_FROZEN):
    """What a verb is asked to do."""


class Nothing(Request):
    """The request of a verb without parameters."""


class Answer(msgspec.Struct, **_FROZEN):
    """What a verb answers. Its fields are its JSON, after `version`."""

    @property
    def exit_code(self) -> int:
        return 0


class Failure(msgspec.Struct, **_FROZEN):
    """The failure for one of several: an expected error, in the words that it would have alone."""

    id: str
    code: str
    what: str
    why: str | None = None
    hint: str | None = None
    evidence: tuple[str, ...] = ()
    consent: Annotated[
        str | None, msgspec.Meta(description="As `yes` it approves what `evidence` shows, and nothing else")
    ] = None

    @classmethod
    def of(cls, id: str, error: AgentFarmError) -> Failure:
        return cls(id, error.code, error.what, error.why, error.hint, error.evidence, error.consent)

    @property
    def error(self) -> AgentFarmError:
        """The error, to be shown, or raised if it is the only part."""
        return error_of(
            self.code,
            self.what,
            why=self.why,
            hint=self.hint,
            evidence=self.evidence,
            consent=self.consent,
        )


class OfSeveral(Answer, kw_only=True):
    """The results for several; the exit code is that of the gravest failure."""

    failed: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.failed)


def exit_code_of(failures: Sequence[Failure]) -> int:
    """The gravest one's."""
    return max((failure.error.exit_code for failure in failures), default=0)


R = TypeVar("R", bound=Request)
A = TypeVar("A", bound=Answer)
_NAMING = {"id", "ids"}


class Context(msgspec.Struct, **_FROZEN):
    """Who asks, and for which farm: `place` is the farm, or opens it when it is needed.

    `directory` is where the caller is, if not in the farm's main checkout. `ask` asks for consent; None if
    nobody can answer. A person who types a runtime's name thereby approves it (`naming_agrees`); a program
    does not. With `whole_ids`, a prefix of an id means no builder.

    `butlers` only exist in the farm's server. `butler` is the one whose session is calling. `environ` and
    `inside` belong to the shell of the caller: its variables, and the session of which it is a process.
    """

    place: Farm | Callable[[], Farm]
    caller: CallerKind = "architect"
    caller_id: str = "architect"
    ask: Ask | None = None
    naming_agrees: bool = False
    whole_ids: bool = False
    tell: Callable[[str], None] = lambda text: None
    directory: Path | None = None
    butlers: RunningButlers | None = None
    butler: str | None = None
    environ: Mapping[str, str] = {}
    inside: str | None = None

    def __repr__(self) -> str:
        """Leaves out the variables, which hold keys."""
        return f"Context({self.caller_id!r})"

    @property
    def farm(self) -> Farm:
        return self.place if isinstance(self.place, Farm) else self.place()

    @property
    def farm_if_there(self) -> Farm | None:
        """For what can also be done outside a repository."""
        try:
            return self.farm
        except AgentFarmError:
            return None


def single(function: Callable[[Context, R], A]) -> Callable[[Context, R], Iterator[A]]:
    """The `run` of a verb whose answer comes in one piece."""

    def run(context: Context, request: R) -> Iterator[A]:
        yield function(context, request)

    return run


def only(parts: Sequence[A]) -> A:
    """The `collect` of a verb whose answer comes in one piece."""
    (answer,) = parts
    return answer


def gathered(answer: type[A], **parts: type | tuple[type, str]) -> Callable[[Sequence[Any]], A]:
    """The `collect` of a verb with parts of several types: each field gets the parts of its type or, if a
    name is given, that attribute of each."""

    def collect(found: Sequence[Any]) -> A:
        fields = {}
        for place, wanted in parts.items():
            kind, name = wanted if isinstance(wanted, tuple) else (wanted, None)
            some = (part for part in found if isinstance(part, kind))
            fields[place] = tuple(getattr(part, name) if name else part for part in some)
        return answer(**fields)

    collect.__annotations__["return"] = answer
    return collect


class _Verb(msgspec.Struct, Generic[R, A], **_FROZEN):
    """The fields of an operation that can be given without names."""

    name: str
    summary: str
    request: type[R]
    answer: type[A]
    run: Callable[[Context, R], Iterator[Any]]
    collect: Callable[[Sequence[Any]], A] = only


class Operation(_Verb[R, A], kw_only=True, **_FROZEN):
    """`summary` is one sentence, `details` is what else a caller should know.

    `tolerant`: it works even if the settings contain a mistake. `repeats`: repeating it changes nothing more.
    `waits`: its request has a `timeout`; with 0 it looks once, and raises TimedOut if it would have to wait.
    `outside`: it makes an AI CLI act, and so uses the network. `pool`: calls of the same pool share a few
    threads in the server, so that slow ones only delay their own kind.

    `serve` carries it out on the event loop of the farm's server, the only place where it can be; `run` then
    sends it there. `doors` are those that offer it beside the terminal, whose
    commands say themselves which verbs they carry out (`cli/derived.py`).

    `elsewhere` says where it runs for a builder on another machine: `there`, at `home` on work that is
    fetched first, at home on what was `fetched` before; or it is refused.
    """

    effect: Effect
    who: frozenset[CallerKind] = ARCHITECT
    tolerant: bool = False
    repeats: bool = False
    waits: bool = False
    outside: bool = False
    pool: str | None = None
    serve: Callable[[Context, R], Awaitable[A]] | None = None
    doors: frozenset[Door] = DOORS
    elsewhere: Elsewhere = "refused"
    details: str = ""

    @property
    def text(self) -> str:
        return f"{self.summary}.\n\n{self.details}".rstrip()

    def parts(self, context: Context, request: R) -> Iterator[Any]:
        """`run`, for builders on any machine of the farm; without a fleet it only looks for a file."""
        if self.serve is None and (self.elsewhere != "refused" or _NAMING & {*request.__struct_fields__}):
            farm = context.farm_if_there
            if farm is not None and farm.paths.fleet.exists():
                from agent_farm.operations.fleet.elsewhere import run_anywhere

                return run_anywhere(self, context, request)
        return self.run(context, request)

    def answer_to(self, context: Context, request: R, heard: Callable[[Any], None] | None = None) -> A:
        """The whole answer at once; of several parts, `heard` gets each as it comes."""
        parts = []
        for part in self.parts(context, request):
            parts.append(part)
            if heard is not None and self.collect is not only:
                heard(part)
        return self.collect(parts)


def with_parts(answer: Any, change: Callable[[Any], Any]) -> Any:
    """The answer with `change` applied to itself and each of its parts."""
    changed: dict[str, Any] = {}
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if isinstance(value, msgspec.Struct):
            changed[name] = change(value)
        elif isinstance(value, tuple):
            changed[name] = tuple(change(one) if isinstance(one, msgspec.Struct) else one for one in value)
    return change(msgspec.structs.replace(answer, **changed) if changed else answer)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON of an answer, the same at every door."""
    return {"version": 1, **part_document(answer)}


def part_document(part: Answer | Failure) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(part, str_keys=True)
    return found

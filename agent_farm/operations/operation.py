"""Operation: a verb as every door offers it.

A request is a frozen Struct whose fields carry their own descriptions: the terminal makes options of them,
MCP a tool's parameters, HTTP a body. `run` yields parts as they come (one for each builder, say), and
`collect` makes the answer of them, whose JSON is the same at every door.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from agent_farm.consent import Ask
from agent_farm.errors import AgentFarmError, error_of
from agent_farm.farm.farm import Farm

if TYPE_CHECKING:
    from agent_farm.sessions.running_butlers import RunningButlers

Effect = Literal["reads", "changes", "destroys"]
CallerKind = Literal["architect", "session", "builder"]
Door = Literal["terminal", "mcp", "http"]
Elsewhere = Literal["refused", "there", "home", "fetched"]

ARCHITECT: frozenset[CallerKind] = frozenset({"architect"})
SESSIONS: frozenset[CallerKind] = frozenset({"architect", "session"})
EVERYBODY: frozenset[CallerKind] = frozenset({"architect", "session", "builder"})
DOORS: frozenset[Door] = frozenset({"terminal", "mcp", "http"})


# Inherited at run time; mypy would have each of their subclasses say it again.
_FROZEN: Any = {"frozen": True}


class Request(msgspec.Struct, forbid_unknown_fields=True, **_FROZEN):
    """What a verb is asked."""


class Nothing(Request):
    """Of a verb that needs to be told nothing."""


class Answer(msgspec.Struct, **_FROZEN):
    """What a verb answers. Its fields are its JSON, after `version`."""

    @property
    def exit_code(self) -> int:
        return 0


class Failure(msgspec.Struct, **_FROZEN):
    """What became of one of several: an expected error, in the words it has alone."""

    id: str
    code: str
    what: str
    why: str | None = None
    hint: str | None = None
    evidence: tuple[str, ...] = ()

    @classmethod
    def of(cls, id: str, error: AgentFarmError) -> Failure:
        return cls(id, error.code, error.what, error.why, error.hint, error.evidence)

    @property
    def error(self) -> AgentFarmError:
        """To be shown, or raised if it is the only part."""
        return error_of(self.code, self.what, why=self.why, hint=self.hint, evidence=self.evidence)


class OfSeveral(Answer, kw_only=True):
    """What became of several; its exit code is that of the gravest failure."""

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
    """Who asks, and for which farm: `place` is it, or opens it once it is needed.

    `directory` is where the caller stands, if not in the farm's main checkout. `ask` puts the question of
    consent and is None where nobody can answer. A person who types a runtime's name agrees to it
    (`naming_agrees`); a program does not. With `whole_ids` a prefix means no builder.

    `butlers` are there in the farm's server alone. `butler` is the one whose session calls. `environ` and
    `inside` are of the shell that asks: its variables, and the session whose process it is.
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
        """Without the variables, which hold keys."""
        return f"Context({self.caller_id!r})"

    @property
    def farm(self) -> Farm:
        return self.place if isinstance(self.place, Farm) else self.place()

    @property
    def farm_if_there(self) -> Farm | None:
        """For what can be done outside of a repository, too."""
        try:
            return self.farm
        except AgentFarmError:
            return None


def single(function: Callable[[Context, R], A]) -> Callable[[Context, R], Iterator[A]]:
    """`run` of a verb whose answer comes in one piece."""

    def run(context: Context, request: R) -> Iterator[A]:
        yield function(context, request)

    return run


def only(parts: Sequence[A]) -> A:
    """`collect` of the same."""
    (answer,) = parts
    return answer


def gathered(answer: type[A], **parts: type | tuple[type, str]) -> Callable[[Sequence[Any]], A]:
    """`collect` of a verb with parts of several types: each field has those of its type, or with a name
    that attribute of each."""

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
    """What of an operation is given without its name."""

    name: str
    summary: str
    request: type[R]
    answer: type[A]
    run: Callable[[Context, R], Iterator[Any]]
    collect: Callable[[Sequence[Any]], A] = only


class Operation(_Verb[R, A], kw_only=True, **_FROZEN):
    """`summary` is one sentence, `details` what else whoever calls it should know.

    `tolerant`: it works with settings that hold a mistake. `repeats`: twice is as good as once.

    `waits`: its request has a `timeout`; with 0 it looks once and raises TimedOut where it is not there yet.
    `outside`: it has an AI CLI, and so the network, do something. `pool`: calls of the same pool share a few
    threads in the server, so that slow ones hold up their own kind and no other.

    `serve` carries it out on the loop of the farm's server, where alone it can be; `run` then has it done
    there. `doors` are those that offer it.

    `elsewhere` is what becomes of it for a builder on another machine: it is done `there`, or at `home` with
    the work fetched first, or at home with what was `fetched` before, or refused by name.
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
        """As `run`, for builders on any machine of the farm; without a fleet that is one look for a file."""
        if self.serve is None and (self.elsewhere != "refused" or _NAMING & {*request.__struct_fields__}):
            farm = context.farm_if_there
            if farm is not None and farm.paths.fleet.exists():
                from agent_farm.operations.fleet.elsewhere import run_anywhere

                return run_anywhere(self, context, request)
        return self.run(context, request)

    def answer_to(self, context: Context, request: R) -> A:
        """All of it at once."""
        return self.collect(list(self.parts(context, request)))


def document(answer: Answer) -> dict[str, Any]:
    """The JSON of an answer at every door."""
    found: dict[str, Any] = msgspec.to_builtins(answer, str_keys=True)
    return {"version": 1, **found}

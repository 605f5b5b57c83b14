"""Shared by verbs over builders: what an id means, and going on with the others when one fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Records
from agent_farm.builders.status import NEEDS_YOU, STATES
from agent_farm.consent import Consent
from agent_farm.errors import AgentFarmError, NotFound, UsageError, as_farm_error, nearest
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import Builder, list_builders
from agent_farm.operations.operation import Context, Failure

BuilderId = Annotated[str, Meta(description="Id of a builder, or an unambiguous prefix")]
BuilderIds = Annotated[
    tuple[str, ...],
    Meta(
        description="Ids of builders, or unambiguous prefixes; @needs-you, @landed or @STATE stands for all"
        " builders in that state"
    ),
]
SomeOrAll = Annotated[
    tuple[str, ...], Meta(description="Ids of builders, or unambiguous prefixes; default: all")
]
SomeBuilders = Annotated[BuilderIds, Meta(min_length=1)]
Yes = Annotated[Consent, Meta(description="Approve what the repository wants to run or copy, as it is now")]

T = TypeVar("T")


def choose(context: Context, id: str) -> BuilderRecord:
    """The builder that `id` means for this caller."""
    return _meant(context, context.farm.records(), id)


def choose_all(context: Context, ids: Iterable[str]) -> list[BuilderRecord]:
    """The builders that `ids` mean, each once; for verbs that only begin when all of them are known."""
    records = context.farm.records()
    found = (_meant(context, records, id) for id in spelled_out(context, ids))
    return list({record.id: record for record in found}.values())


def spelled_out(context: Context, ids: Iterable[str], elsewhere: Sequence[Builder] = ()) -> Iterator[str]:
    """The ids, with each `@word` replaced by the builders it stands for, here and among those `elsewhere`."""
    for id in ids:
        if not id.startswith("@"):
            yield id
            continue
        found = [one.record.id for one in _like(context.farm, id[1:], elsewhere)]
        if not found:
            said = {"@needs-you": "needs you", "@landed": "has landed"}.get(id, f"is {id[1:]}")
            context.tell(f"No builder {said}")
        yield from found


def _like(farm: Farm, word: str, elsewhere: Sequence[Builder]) -> list[Builder]:
    words = ("needs-you", "landed", *STATES)
    if word not in words:
        close = nearest(word, words)
        why = f"Did you mean @{close}?" if close else f"There are @{', @'.join(words)}."
        raise UsageError(f"@{word} does not stand for any builders", why=why)
    builders = [*list_builders(farm, with_git=word == "landed", fresh=True), *elsewhere]
    if word == "landed":
        return [one for one in builders if one.git and one.git.landed and one.git.has_commits]
    wanted = NEEDS_YOU if word == "needs-you" else (word,)
    return [one for one in builders if one.status.state in wanted]


def _meant(context: Context, records: Records, id: str) -> BuilderRecord:
    if not context.whole_ids:
        return records.match(id)
    if id in records:
        return records[id]
    if any(known.startswith(id) for known in records):
        raise NotFound(f"No builder {id}", hint="af status")
    return records.match(id)


def described(farm: Farm, ids: Collection[str]) -> list[Builder]:
    """The builders with their states; for one on another machine, the state last reported."""
    found = {one.record.id: one for one in list_builders(farm, ids, with_git=False)}
    if farm.paths.fleet.exists():
        from agent_farm.operations.fleet.rows_elsewhere import known_rows  # only needed with a fleet

        found |= {one.record.id: one for one in known_rows(farm) if one.record.id in found}
    return list(found.values())


def choose_each(
    context: Context, ids: Iterable[str], find: Callable[[Context, str], BuilderRecord] = choose
) -> tuple[list[BuilderRecord], tuple[Failure, ...]]:
    """The builders that `ids` mean, each once, and what is wrong with the other ids.

    Raises if none of the ids means a builder.
    """
    found: dict[str, BuilderRecord] = {}
    failures: list[Failure] = []
    error: AgentFarmError | None = None
    for id in dict.fromkeys(spelled_out(context, ids)):
        try:
            record = find(context, id)
        except AgentFarmError as problem:
            error = error or problem
            failures.append(Failure.of(id, problem))
        else:
            found[record.id] = record
    if error and not found:
        raise error
    return list(found.values()), tuple(failures)


def choose_each_or_all(
    context: Context, ids: Sequence[str]
) -> tuple[list[BuilderRecord], tuple[Failure, ...]]:
    return choose_each(context, ids) if ids else ([*context.farm.records().values()], ())


def each(
    records: Sequence[BuilderRecord],
    act: Callable[[BuilderRecord], T],
    *,
    alone: bool = True,
    otherwise: str = "cannot be reached",
) -> Iterator[T | Failure]:
    """The result for each builder, as it comes; a failure does not stop the others.

    `otherwise` completes the message when the system fails. With a single record, and nothing else to report
    (`alone`), its error is raised.
    """
    for record in records:
        try:
            yield act(record)
        except (AgentFarmError, OSError) as problem:
            error = as_farm_error(problem, f"{record.id} {otherwise}")
            if alone and len(records) == 1:
                raise error from None
            yield Failure.of(record.id, error)


def told(answers: Iterable[tuple[str, T | AgentFarmError]], *, alone: bool = True) -> Iterator[T | Failure]:
    """Like `each`, for answers that came for many builders together."""
    for id, found in answers:
        if not isinstance(found, AgentFarmError):
            yield found
        elif alone:
            raise found
        else:
            yield Failure.of(id, found)


def failures_of(parts: Iterable[object]) -> tuple[Failure, ...]:
    return tuple(part for part in parts if isinstance(part, Failure))

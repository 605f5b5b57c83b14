"""`costs`: tokens and money that builders used, by builder, start, day, and landed change."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple, Self

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.spending import Spent, load_spending
from agent_farm.farm.farm import Farm
from agent_farm.farm.git_state import GitState, git_states
from agent_farm.farm.trash import list_kept
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request


class CostsAsked(Request):
    days: Annotated[int, Meta(ge=1, le=400, description="How far back")] = 30


class Sum(Answer):
    """`cost` is in US dollars, as reported by the runtimes; null if none did."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    @classmethod
    def of(cls, parts: Iterable[Spent], **more: Any) -> Self:
        parts = list(parts)
        costs = [part.cost for part in parts if part.cost is not None]
        return cls(
            sum(part.input_tokens for part in parts),
            sum(part.output_tokens for part in parts),
            sum(part.cached_tokens for part in parts),
            sum(costs) if costs else None,
            **more,
        )


class OfRun(Sum):
    """One start of a builder: the first one, or a resume."""

    run: str = ""


class OfDay(Sum):
    day: str = ""
    runtime: str = ""


class OfBuilder(Sum):
    """`landed` is null if it is not known."""

    id: str = ""
    title: str = ""
    runtime: str = ""
    landed: bool | None = None
    removed: bool = False
    runs: tuple[OfRun, ...] = ()


class Costs(Answer):
    """`per_landed` divides everything used, even by what never landed, by the changes that have landed."""

    total: Sum
    landed: int
    per_landed: Sum | None
    builders: tuple[OfBuilder, ...]
    days: tuple[OfDay, ...]


class Known(NamedTuple):
    """A builder, and all that it has used."""

    id: str
    title: str
    runtime: str
    spent: Sequence[Spent]
    landed: bool | None
    removed: bool

    @classmethod
    def of(
        cls, record: BuilderRecord, spent: Sequence[Spent], landed: bool | None, *, removed: bool = False
    ) -> Known:
        return cls(record.id, record.title, record.runtime, spent, landed, removed)


@reads(
    "Sum up the tokens and the cost of builders",
    details="The numbers are those that each runtime reports after a turn. Costs are only known for"
    " runtimes that report them.",
)
def costs(context: Context, request: CostsAsked) -> Costs:
    since = time.time() - request.days * 86400
    known = (*_living(context.farm), *_removed(context.farm), *_elsewhere(context.farm))
    found = [_since(one, since) for one in known]
    found = [one for one in found if one.spent]
    total = Sum.of(part for one in found for part in one.spent)
    landed = sum(one.landed is True for one in found)
    return Costs(
        total=total,
        landed=landed,
        per_landed=_share(total, landed) if landed else None,
        builders=tuple(map(_of_builder, found)),
        days=tuple(_days(found)),
    )


def _since(one: Known, since: float) -> Known:
    return one._replace(spent=[part for part in one.spent if part.at >= since])


def _living(farm: Farm) -> Iterator[Known]:
    records = list(farm.records().values())
    states = git_states(farm, records)
    for record in records:
        spent = load_spending(farm.run(record.id).spending)
        yield Known.of(record, spent, has_landed(states.get(record.id)))


def has_landed(state: GitState | None) -> bool | None:
    if state is None or state.landed is None:
        return None
    return state.landed and state.has_commits


def _elsewhere(farm: Farm) -> Sequence[Known]:
    if not farm.paths.fleet.exists():
        return ()
    from agent_farm.operations.fleet.costs_elsewhere import costs_elsewhere  # only farms with a fleet need it

    return costs_elsewhere(farm)


def _removed(farm: Farm) -> Iterator[Known]:
    """A builder removed without a salvage ref had landed."""
    for kept in list_kept(farm):
        had_commits = kept.head is not None and kept.head != kept.record.base_commit
        yield Known.of(
            kept.record,
            load_spending(kept.run / farm.run(kept.record.id).spending.name),
            had_commits and kept.salvage is None,
            removed=True,
        )


def _of_builder(one: Known) -> OfBuilder:
    runs = dict.fromkeys(part.run for part in one.spent)
    return OfBuilder.of(
        one.spent,
        id=one.id,
        title=one.title,
        runtime=one.runtime,
        landed=one.landed,
        removed=one.removed,
        runs=tuple(OfRun.of((part for part in one.spent if part.run == run), run=run) for run in runs),
    )


def _days(found: Sequence[Known]) -> Iterator[OfDay]:
    parts: dict[tuple[str, str], list[Spent]] = {}
    for one in found:
        for part in one.spent:
            parts.setdefault((day_of(part), one.runtime), []).append(part)
    return (OfDay.of(some, day=day, runtime=runtime) for (day, runtime), some in sorted(parts.items()))


def day_of(part: Spent) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(part.at))


def _share(total: Sum, number: int) -> Sum:
    return Sum(
        round(total.input_tokens / number),
        round(total.output_tokens / number),
        round(total.cached_tokens / number),
        None if total.cost is None else total.cost / number,
    )

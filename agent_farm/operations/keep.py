"""`keep`: keep or land one of the builders compared, and remove the others, which can be restored."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.consent import Consent
from agent_farm.disk import is_locked
from agent_farm.errors import AgentFarmError
from agent_farm.landing.contest.comparisons import Comparison, newest_with
from agent_farm.landing.train.landing_journal import Store
from agent_farm.landing.train.risk import note_contest
from agent_farm.launch import as_command
from agent_farm.operations.builders import BuilderId, Yes, choose, each, failures_of
from agent_farm.operations.declare import in_parts
from agent_farm.operations.land import Land, LandContinue, land, land_continue
from agent_farm.operations.land_steps import Part as LandPart
from agent_farm.operations.landing_queue import LandingQueue
from agent_farm.operations.operation import Answer, Context, Failure, Request, exit_code_of
from agent_farm.operations.prune import Removal, WouldRemove
from agent_farm.operations.remove_decided import RemoveDecided, remove_decided


class Keep(Request):
    id: BuilderId
    land: Annotated[bool, Meta(description="Land it first; the others stay if it does not land")] = False
    dry_run: Annotated[bool, Meta(description="Show what would be removed, and do nothing")] = False
    yes: Yes = False


class KeptOne(Answer):
    """`removed` can be restored completely; `refused` are those that stay, and why.

    `landing` is null unless landing was requested.
    """

    id: str
    landing: LandingQueue | None
    removed: tuple[Removal, ...] = ()
    would_remove: tuple[str, ...] = ()
    refused: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> int:
        return max(self.landing.exit_code if self.landing else 0, exit_code_of(self.refused))


class Winner(Answer):
    """The one that is kept."""

    id: str


Part = Winner | LandPart | Removal | WouldRemove | Failure


def _collect(parts: Sequence[Part]) -> KeptOne:
    (stays,) = (part for part in parts if isinstance(part, Winner))
    landings = [part for part in parts if isinstance(part, LandingQueue)]
    return KeptOne(
        id=stays.id,
        landing=landings[-1] if landings else None,
        removed=tuple(part for part in parts if isinstance(part, Removal)),
        would_remove=tuple(part.id for part in parts if isinstance(part, WouldRemove)),
        refused=failures_of(parts),
    )


@in_parts(
    "Keep one of the builders compared, and remove the others",
    _collect,
    effect="destroys",
    outside=True,
    details="The others are those in its newest comparison. They are removed with their commits and"
    " files; `restore` brings each back. One that is working, or has committed since, stays and"
    " is named. Others on another machine are removed there.",
    elsewhere="home",
)
def keep(context: Context, request: Keep) -> Iterator[Part]:
    farm = context.farm
    record = choose(context, request.id)
    comparison = newest_with(farm.paths.comparisons, record.id)
    yield Winner(record.id)
    if request.land and not request.dry_run:
        landing = yield from _landed(context, record, yes=request.yes)
        if any(one.id == record.id for one in landing.returned):
            return
        _require_landed(record, landing)
    records = farm.registry.read()
    rest = [records[id] for id in comparison.tips if id != record.id and id in records]
    if not request.dry_run:
        compared = {id: records[id].runtime for id in comparison.tips if id in records}
        if len(compared) > 1:
            note_contest(farm.paths.landing_record, comparison.at, record.id, compared)
    act = partial(_remove, context, comparison, request.dry_run)
    yield from each(rest, act, alone=False, otherwise="was not removed")


def _landed(
    context: Context, record: BuilderRecord, *, yes: Consent
) -> Generator[LandPart, None, LandingQueue]:
    """Land it through the queue; an interrupted landing with this builder in it is continued."""
    farm = context.farm
    queue = Store(farm.paths.landing).read()
    cut_short = queue is not None and not queue.closed and not is_locked(farm.paths.landing_lock)
    last = None
    if cut_short and queue is not None and record.id in queue.entries:
        parts = land_continue.run(context, LandContinue(yes=yes))
    else:
        parts = land.run(context, Land(ids=(record.id,), yes=yes))
    for part in parts:
        last = part if isinstance(part, LandingQueue) else last
        yield part
    assert last is not None
    return last


def _require_landed(record: BuilderRecord, landing: LandingQueue) -> None:
    if record.id not in {*(one.id for one in landing.landed), *landing.present}:
        raise AgentFarmError(
            f"{record.id} waits in the landing queue",
            why="Another af lands it. The others stay until it has landed.",
            hint=as_command("af", "keep", "--land", record.id),
        )


def _remove(
    context: Context, comparison: Comparison, dry_run: bool, record: BuilderRecord
) -> Removal | WouldRemove:
    return remove_decided(context, record, RemoveDecided(record.id, comparison.tips, dry_run))

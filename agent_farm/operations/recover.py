"""`recover`: start every builder again whose session is gone, as `resume` does for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.listing import read_statuses
from agent_farm.operations.builders import Yes, choose, choose_each, each, failures_of, told
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, OfSeveral, Request
from agent_farm.operations.resume import require_said, start_again


class Recover(Request):
    ids: Annotated[
        tuple[str, ...],
        Meta(description="Ids of lost builders, or unambiguous prefixes; default: all on this machine"),
    ] = ()
    on: Annotated[
        str | None,
        Meta(
            description="Where to restart builders of a machine that does not answer, from their last"
            " checkpoint: a machine, fleet (one with room) or local"
        ),
    ] = None
    say: Annotated[
        str | None, Meta(description="Text for those that were in the middle of a turn, as in: Go on")
    ] = None
    dry_run: Annotated[bool, Meta(description="Show which builders would come back, and start nothing")] = (
        False
    )
    yes: Yes = False


class LostBuilder(Answer):
    """A builder that had neither ended nor been stopped, and whose session is gone."""

    id: str
    runtime: str
    title: str
    cut_short: Annotated[bool, Meta(description="It was in the middle of a turn")]


class Back(Answer):
    id: str
    interrupted: bool


class Recovered(OfSeveral):
    resumed: tuple[str, ...]
    interrupted: Annotated[
        tuple[str, ...],
        Meta(description="Builders whose turn was cut short and that wait to be told to continue"),
    ] = ()
    would_resume: Annotated[tuple[LostBuilder, ...], Meta(description="Of a dry run")] = ()


Part = LostBuilder | Back | Failure


def _collect(parts: Sequence[Part]) -> Recovered:
    back = [part for part in parts if isinstance(part, Back)]
    return Recovered(
        resumed=tuple(one.id for one in back),
        failed=failures_of(parts),
        interrupted=tuple(one.id for one in back if one.interrupted),
        would_resume=tuple(part for part in parts if isinstance(part, LostBuilder)),
    )


@in_parts(
    "Bring back all lost builders after a reboot or a dead tmux server",
    _collect,
    effect="changes",
    outside=True,
    pool="start",
    details="Builders that were in the middle of a turn come back as `interrupted`, unless they are told"
    " to continue. A builder on another machine comes back there, or with `on` elsewhere, once"
    " that machine has not answered for fleet.lost_seconds. If it was still running there, it is"
    " stopped when that machine answers again.",
    elsewhere="there",
)
def recover(context: Context, request: Recover) -> Iterator[Part]:
    require_said(request.say)
    if request.on is not None:
        _require_none_here(context, request)
    unknown: tuple[Failure, ...] = ()
    chosen = [*context.farm.records().values()]
    if request.ids:
        chosen, unknown = choose_each(context, request.ids)
    statuses = read_statuses(context.farm, chosen)
    lost = [record for record in chosen if statuses[record.id].state == "lost"]
    yield from unknown
    if request.ids:
        yield from each(
            [one for one in chosen if one not in lost],
            lambda one: _refuse(one, statuses[one.id]),
            alone=len(request.ids) == 1,
        )
    if request.dry_run:
        for one in lost:
            yield LostBuilder(one.id, one.runtime, one.title, statuses[one.id].cut_short)
        return

    cut_short = {record.id for record in lost if statuses[record.id].cut_short}
    say = dict.fromkeys(cut_short, request.say) if request.say is not None else {}

    def answers() -> Iterator[tuple[str, Back | AgentFarmError]]:
        for id, found in start_again(context, [one.id for one in lost], say, yes=request.yes):
            if isinstance(found, AgentFarmError):
                yield id, found
            else:
                yield id, Back(id, id in cut_short and id not in say and found.continues)

    yield from told(answers(), alone=False)


def _refuse(record: BuilderRecord, status: Status) -> Part:
    raise UsageError(f"{record.id} is not lost ({status.state})", hint=f"af resume {record.id}")


def _require_none_here(context: Context, request: Recover) -> None:
    if not request.ids:
        raise UsageError("--on needs the ids of builders", hint="af recover ID --on HOST")
    raise UsageError(
        f"{choose(context, request.ids[0]).id} is on this machine",
        why="Builders here come back here.",
        hint="af recover",
    )

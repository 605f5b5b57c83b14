"""`recover`: all lost builders come back, after a reboot or a dead tmux server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.farm.resume import lost_builders, resume
from agent_farm.operations.builders import Yes, each, exit_code_of, failures_of
from agent_farm.operations.operation import Answer, Context, Failure, Operation, Request
from agent_farm.operations.requests import require_said


class Recover(Request):
    say: Annotated[
        str | None, Meta(description="Tell those this that were in the middle of a turn, as in: Go on")
    ] = None
    dry_run: Annotated[bool, Meta(description="Show who would come back, and start nothing")] = False
    yes: Yes = False


class LostBuilder(Answer):
    id: str
    runtime: str
    title: str
    cut_short: Annotated[bool, Meta(description="It was in the middle of a turn")]


class Back(Answer):
    id: str
    interrupted: bool


class Recovered(Answer):
    resumed: tuple[str, ...]
    failed: tuple[Failure, ...] = ()
    interrupted: Annotated[
        tuple[str, ...], Meta(description="Of them, those whose turn was cut short, and who wait for a word")
    ] = ()
    would_resume: Annotated[tuple[LostBuilder, ...], Meta(description="Of a dry run")] = ()

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.failed)


Part = LostBuilder | Back | Failure


def _run(context: Context, request: Recover) -> Iterator[Part]:
    require_said(request.say)
    lost = {one.record.id: one for one in lost_builders(context.farm)}
    if request.dry_run:
        for id, one in lost.items():
            yield LostBuilder(id, one.record.runtime, one.record.title, one.cut_short)
        return

    def bring_back(record: BuilderRecord) -> Back:
        cut_short = lost[record.id].cut_short
        say = request.say if cut_short else None
        found = resume(context.farm, record, say=say, yes=request.yes, ask=context.ask)
        return Back(record.id, cut_short and say is None and found.continues)

    yield from each([one.record for one in lost.values()], bring_back, alone=False)


def _collect(parts: Sequence[Part]) -> Recovered:
    back = [part for part in parts if isinstance(part, Back)]
    return Recovered(
        resumed=tuple(one.id for one in back),
        failed=failures_of(parts),
        interrupted=tuple(one.id for one in back if one.interrupted),
        would_resume=tuple(part for part in parts if isinstance(part, LostBuilder)),
    )


RECOVER = Operation(
    "recover",
    "Bring back all lost builders after a reboot or a dead tmux server",
    Recover,
    Recovered,
    _run,
    _collect,
    effect="changes",
    outside=True,
    pool="start",
    details="Those that were in the middle of a turn come back as `interrupted`, unless they are told more.",
)

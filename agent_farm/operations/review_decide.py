"""`review_decide`: approve a result, which lands it; reject it with a reason; or undo."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta, structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.landing.train.landing_journal import Store, withdrawn
from agent_farm.landing.work import find_work
from agent_farm.launch import as_command
from agent_farm.operations.builders import BuilderId, Yes, choose
from agent_farm.operations.declare import in_parts
from agent_farm.operations.land import Land, land
from agent_farm.operations.land_steps import Part
from agent_farm.operations.landing_queue import LandingQueue
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.operations.review_comment import ReviewSent, send_drafts
from agent_farm.operations.review_mark import ReviewKept, Tip, change_kept
from agent_farm.review.diff_as_read import files_read
from agent_farm.review.kept import Comment, Decision, KeptReview
from agent_farm.review.marking import marked
from agent_farm.review.rounds import Result, carried_marks


class ReviewDecide(Request):
    id: BuilderId
    decision: Annotated[
        Literal["approve", "reject", "undo"],
        Meta(description="approve: into the landing queue; reject: back to its builder; undo: the last step"),
    ]
    tip: Tip = None
    reason: Annotated[str | None, Meta(description="Reason for the rejection; its builder is told")] = None
    yes: Yes = False


class ReviewDecided(Answer):
    """`landing` is the queue after an approval, `sent` the message to the builder after a rejection."""

    kept: ReviewKept
    undone: str | None = None
    landing: LandingQueue | None = None
    sent: ReviewSent | None = None

    @property
    def exit_code(self) -> int:
        return self.landing.exit_code if self.landing else self.sent.exit_code if self.sent else 0


def _collect(parts: Sequence[Part | ReviewDecided]) -> ReviewDecided:
    return [part for part in parts if isinstance(part, ReviewDecided)][-1]


@in_parts(
    "Approve a result, which lands it, or reject it with a reason, or undo the last step of its review",
    _collect,
    effect="changes",
    outside=True,
    details="Approved work goes into the landing queue, which another process carries out. Undo takes"
    " back one mark, approval or rejection at a time.",
    elsewhere="fetched",
)
def review_decide(context: Context, request: ReviewDecide) -> Iterator[Part | ReviewDecided]:
    record = choose(context, request.id)
    if request.decision == "undo":
        yield _undone(context.farm, record)
    elif request.decision == "reject":
        yield _rejected(context, record, request)
    else:
        yield from _approved(context, record, request)


def _decided(
    farm: Farm, record: BuilderRecord, request: ReviewDecide, word: Literal["approved", "rejected"]
) -> ReviewKept:
    def change(result: Result, kept: KeptReview) -> KeptReview:
        decision = Decision(word, result.round.tip, time.time(), request.reason)
        marks = marked(result.files, files_read(result.files, result.marks), result.marks)
        if word == "rejected":
            number = max((one.number for one in kept.comments), default=0) + 1
            said = Comment(number, f"This should not land as it is: {request.reason}")
            kept = structs.replace(kept, comments=(*kept.comments, said))
        return kept.after(word, marks=marks if word == "approved" else result.marks, decision=decision)

    return change_kept(farm, record, request.tip, change)


def _rejected(context: Context, record: BuilderRecord, request: ReviewDecide) -> ReviewDecided:
    if not (request.reason or "").strip():
        raise UsageError(
            "Give a reason for the rejection",
            hint=as_command("af", "review", record.id, "--reject", "REASON"),
        )
    kept = _decided(context.farm, record, request, "rejected")
    sent = send_drafts(context, record)
    return ReviewDecided(structs.replace(kept, comments=sent.comments), sent=sent)


def _approved(
    context: Context, record: BuilderRecord, request: ReviewDecide
) -> Iterator[Part | ReviewDecided]:
    """Only lands the work that was reviewed, and nothing newer."""
    farm = context.farm
    now = find_work(farm, record).work.tip
    if request.tip not in (None, now):
        raise AgentFarmError(
            f"{record.id} has committed more since you looked",
            why=f"You approve {(request.tip or '')[:10]}, and {now[:10]} would land.",
            hint=as_command("af", "review", record.id),
        )
    kept = _decided(farm, record, structs.replace(request, tip=now), "approved")
    landing = None
    try:
        for part in land.run(context, Land(ids=(record.id,), yes=request.yes, background=True)):
            landing = part if isinstance(part, LandingQueue) else landing
            yield part
    except AgentFarmError:
        queue = Store(farm.paths.landing).read()
        if queue is None or record.id not in (*queue.line.ids(), *queue.line.held_ids()):
            _undone(farm, record)  # it never got into the queue
        raise
    yield ReviewDecided(kept, landing=landing)


def _undone(farm: Farm, record: BuilderRecord) -> ReviewDecided:
    done: list[str] = []

    def change(result: Result, kept: KeptReview) -> KeptReview:
        if not kept.past:
            raise AgentFarmError(f"There is nothing to undo in the review of {record.id}")
        *past, last = kept.past
        if last.done == "approved":
            _withdraw(farm, record)
        done.append(last.done)
        marks = carried_marks(farm.repository, last.marks, result)
        return structs.replace(kept, marks=marks, decision=last.decision, past=tuple(past))

    return ReviewDecided(change_kept(farm, record, None, change), undone=done[0])


def _withdraw(farm: Farm, record: BuilderRecord) -> None:
    """Work that goes back to its builder leaves the queue."""
    store = Store(farm.paths.landing)
    if store.read() is not None:
        store.update(lambda queue: withdrawn(queue, record.id))

"""`review_mark`: record what of a result was read; and how everything recorded of a review is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta, structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.ref_names import ObjectName
from agent_farm.disk import file_lock
from agent_farm.documents import store
from agent_farm.errors import NotFound, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.launch import as_command
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.operations.review_show import require_result
from agent_farm.review.diff_as_read import FileRead, counted, files_read
from agent_farm.review.kept import Comment, Decision, KeptReview
from agent_farm.review.marking import marked
from agent_farm.review.rounds import Result

Tip: TypeAlias = Annotated[
    ObjectName | None,
    Meta(description="The commit that was looked at; by default the one that is there now"),
]


class ReviewMark(Request):
    id: BuilderId
    tip: Tip = None
    file: Annotated[str | None, Meta(description="Only this file")] = None
    hunk: Annotated[str | None, Meta(description="Only the hunk of the file with this id")] = None
    unread: Annotated[bool, Meta(description="Mark it as unread")] = False


class ReviewKept(Answer):
    """What is recorded of the review now; `unread` counts changed lines that were not read yet."""

    id: str
    tip: str
    unread: int
    comments: tuple[Comment, ...]
    decision: Decision | None
    undoable: str | None


@acts(
    "Mark a result, a file or a hunk of it as read",
    tolerant=True,
    repeats=True,
    pool="look",
    elsewhere="fetched",
)
def review_mark(context: Context, request: ReviewMark) -> ReviewKept:
    if request.hunk and not request.file:
        raise UsageError("A hunk needs a file", why="Name the file as well.")

    def change(result: Result, kept: KeptReview) -> KeptReview:
        shown = files_read(result.files, result.marks)
        _require_there(request, shown)
        marks = marked(
            result.files, shown, result.marks, path=request.file, hunk=request.hunk, unread=request.unread
        )
        what = request.file or "all of it"
        return kept.after(f"{'unread' if request.unread else 'read'}: {what}", marks=marks)

    return change_kept(context.farm, choose(context, request.id), request.tip, change)


def _require_there(request: ReviewMark, shown: Sequence[FileRead]) -> None:
    if request.file is None:
        return
    file = next((one for one in shown if one.path == request.file), None)
    if file is None:
        raise no_such_file(request.id, request.file)
    if request.hunk and all(one.id != request.hunk for one in file.hunks):
        raise NotFound(
            f"{request.file} has no hunk {request.hunk}",
            why="Its lines have changed since.",
            hint=as_command("af", "review", request.id),
        )


def no_such_file(id: str, path: str) -> NotFound:
    return NotFound(f"{id} changes no file {path}", hint=as_command("af", "review", id))


def change_kept(
    farm: Farm, record: BuilderRecord, tip: str | None, change: Callable[[Result, KeptReview], KeptReview]
) -> ReviewKept:
    """Apply `change` under the lock of the review, with marks and comments moved to this round."""
    with file_lock(farm.paths.review_lock(record.id)):
        result = require_result(farm, record, tip)
        kept = structs.replace(result.kept, marks=result.marks, comments=result.comments)
        kept = change(result, kept)
        store(farm.run(record.id).review, kept)
    return shown_kept(result, kept)


def shown_kept(result: Result, kept: KeptReview) -> ReviewKept:
    marks = kept.marks or result.marks
    current = kept.decision and kept.decision.tip == result.round.tip
    return ReviewKept(
        id=result.record.id,
        tip=result.round.tip,
        unread=counted(result.files, marks)[2],
        comments=kept.comments,
        decision=kept.decision if current else None,
        undoable=kept.past[-1].done if kept.past else None,
    )

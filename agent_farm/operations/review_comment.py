"""`review_comment`, `review_send`: comments on lines, drafted one by one and sent to the builder together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock
from agent_farm.documents import store
from agent_farm.errors import AgentFarmError, NotFound, UsageError
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.operations.review_mark import ReviewKept, Tip, change_kept, no_such_file
from agent_farm.operations.send import Delivered, Send, send
from agent_farm.review.diff_as_read import files_read
from agent_farm.review.kept import Comment, KeptReview, Side, load_kept
from agent_farm.review.rounds import Result

_MOST_QUOTED = 6
_MOST_COMMENT = 10_000


class ReviewComment(Request):
    id: BuilderId
    text: Annotated[str, Meta(description="Text of the comment; empty removes the draft `number`")]
    tip: Tip = None
    file: Annotated[str | None, Meta(description="The file it is about; without one, all of the work")] = None
    first: Annotated[int, Meta(ge=0, description="The line, or the first of several")] = 0
    last: Annotated[int, Meta(ge=0, description="The last line; by default the first")] = 0
    side: Annotated[
        Side, Meta(description="Whether lines are counted in the file as it is, or as it was before")
    ] = "new"
    number: Annotated[int | None, Meta(description="The draft to rewrite, or to remove")] = None


@acts(
    "Draft a comment on lines of a result, or on all of it",
    tolerant=True,
    pool="look",
    elsewhere="fetched",
)
def review_comment(context: Context, request: ReviewComment) -> ReviewKept:
    if len(request.text) > _MOST_COMMENT:
        raise UsageError(f"A comment can have up to {_MOST_COMMENT} characters")

    def change(result: Result, kept: KeptReview) -> KeptReview:
        if request.number is None:
            return structs.replace(kept, comments=(*kept.comments, _new(request, result, kept)))
        before = next((one for one in kept.comments if one.number == request.number), None)
        if before is None:
            raise NotFound(f"{request.id} has no comment {request.number}")
        if request.text and before.delivery != "draft":
            raise AgentFarmError(f"Comment {request.number} was sent", why="Its builder already has it.")
        new = [structs.replace(before, text=request.text)] if request.text else []
        others = (new if one is before else [one] for one in kept.comments)
        return structs.replace(kept, comments=tuple(one for some in others for one in some))

    return change_kept(context.farm, choose(context, request.id), request.tip, change)


def _new(request: ReviewComment, result: Result, kept: KeptReview) -> Comment:
    if not request.text.strip():
        raise UsageError("The comment is empty")
    number = max((one.number for one in kept.comments), default=0) + 1
    if request.file is None:
        return Comment(number, request.text)
    first, last = request.first, request.last or request.first
    if not 0 < first <= last:
        raise UsageError("Name the line, or the first and the last one")
    lines = {
        line.new if request.side == "new" else line.old: line.text
        for file in files_read(result.files, result.marks)
        if request.file == (file.path if request.side == "new" else file.former)
        for hunk in file.hunks
        for line in hunk.lines
        if line.sign in (" ", "+" if request.side == "new" else "-") and not line.gone
    }
    if not lines:
        raise no_such_file(request.id, request.file)
    missing = [line for line in range(first, last + 1) if line not in lines]
    if missing:
        raise NotFound(f"Line {missing[0]} of {request.file} is not in the diff")
    quoted = tuple(lines[line] for line in range(first, last + 1))
    return Comment(number, request.text, request.file, request.side, first, last, quoted)


class ReviewSend(Request):
    id: BuilderId


class ReviewSent(Answer):
    """`delivery` is null if there was nothing to send."""

    id: str
    text: str
    delivery: Delivered | None
    comments: tuple[Comment, ...]

    @property
    def exit_code(self) -> int:
        return self.delivery.exit_code if self.delivery else 0


@acts(
    "Send the drafted comments to the builder, as one message",
    tolerant=True,
    outside=True,
    pool="send",
    elsewhere="fetched",
)
def review_send(context: Context, request: ReviewSend) -> ReviewSent:
    return send_drafts(context, choose(context, request.id))


def send_drafts(context: Context, record: BuilderRecord) -> ReviewSent:
    """Send all drafts as one message, once: what may have arrived is not sent again."""
    farm = context.farm
    file = farm.run(record.id).review
    with file_lock(farm.paths.review_lock(record.id)):
        kept = load_kept(file)
        cut_short = _with(kept, "sending", "unconfirmed")
        drafts = [one for one in cut_short.comments if one.delivery == "draft"]
        if not drafts:
            store(file, cut_short)
            return ReviewSent(record.id, "", None, cut_short.comments)
        text = message_of(drafts)
        store(file, _with(cut_short, "draft", "sending"))
        (delivery,) = send.answer_to(
            structs.replace(context, whole_ids=True), Send(ids=(record.id,), text=text)
        ).deliveries
        said: Literal["draft", "submitted", "unconfirmed"] = (
            "submitted"
            if delivery.outcome == "submitted"
            else "draft"
            if delivery.outcome == "held"
            else "unconfirmed"
        )
        after = _with(load_kept(file), "sending", said)
        store(file, after)
    return ReviewSent(record.id, text, delivery, after.comments)


def _with(
    kept: KeptReview, before: str, now: Literal["draft", "sending", "submitted", "unconfirmed"]
) -> KeptReview:
    comments = (
        structs.replace(one, delivery=now) if one.delivery == before else one for one in kept.comments
    )
    return structs.replace(kept, comments=tuple(comments))


def message_of(comments: Sequence[Comment]) -> str:
    """Quotes the lines of each comment, since these may have moved by the time it is read."""
    parts = ["Comments from the review of your work:"]
    for one in comments:
        quoted = [f"> {_plain(line)}" for line in one.quoted[:_MOST_QUOTED]]
        more = [f"> … {len(one.quoted) - _MOST_QUOTED} more lines"] if len(one.quoted) > _MOST_QUOTED else []
        parts.append("\n".join([*([_plain(one.place)] if one.place else []), *quoted, *more, one.text]))
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """A builder's lines may contain control sequences that must not reach a terminal."""
    return "".join(char if char.isprintable() or char == "\t" else "�" for char in text)

"""`af review`: the queue of results in one screen, and each of its steps as an option for scripts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from agent_farm.cli.cells import counted, cut
from agent_farm.cli.columns import table
from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.land import show_landing
from agent_farm.cli.output import (
    answer,
    narrate,
    narrate_hint,
    page,
    printable,
    show_error,
    style,
    terminal_width,
)
from agent_farm.cli.review_lines import comment_line, evidence
from agent_farm.errors import UsageError
from agent_farm.launch import as_command
from agent_farm.operations.review import ReviewItem, ReviewQueue, queue_and_first
from agent_farm.operations.review_comment import ReviewSent
from agent_farm.operations.review_decide import ReviewDecided
from agent_farm.operations.review_mark import ReviewKept
from agent_farm.operations.review_show import ReviewShown
from agent_farm.review.diff_as_read import LineRead
from agent_farm.review.folding import Fold, folded, heading_of

_STYLES = {"+": "green", "-": "red"}
_PLACE = re.compile(r"(?P<file>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")


def _show_queue(found: ReviewQueue) -> None:
    for failure in found.failed:
        show_error(failure.error, as_json=False)
    if not found.items and not found.failed:
        narrate("There is nothing to review: no builder has commits that have not landed.")
    width = terminal_width()
    for item, line in zip(found.items, table([_row(item) for item in found.items], width), strict=True):
        answer(line)
        for reason in item.reasons:
            answer(style(printable(cut(f"      {reason}", width)), "dim"))
    if found.items:
        narrate_hint(as_command("af", "review", found.items[0].id))


def _row(item: ReviewItem) -> tuple[str, ...]:
    numbers, title = f"+{item.added} -{item.removed}", printable(" ".join(item.title.split()))
    return f"{item.risk:>4}", item.id, numbers, printable(item.progress), title


def _show_result(found: ReviewShown) -> None:
    page("\n".join(_text(found)))


def _text(found: ReviewShown) -> Iterator[str]:
    yield printable(f"{found.id}  {' '.join(found.title.split())}")
    told = [*evidence(found), *((comment_line(one), "cyan") for one in found.comments)]
    yield from (style(printable(f"  {text}"), name) for text, name in told)
    for file in found.files:
        yield ""
        yield style(printable(heading_of(file)), "bold")
        if file.path in found.cut:
            yield f"  its lines are not shown here: af review {found.id} --file"
        for hunk in file.hunks:
            yield style(printable(f"  @ {hunk.heading or hunk.first}".rstrip()), "cyan")
            yield from map(_line, folded(file, hunk))
    if not found.files:
        yield "Nothing is new since it was read."


def _line(line: LineRead | Fold) -> str:
    if isinstance(line, Fold):
        return style(printable(f"  … {line.text}"), "dim")
    if line.gone:
        return style(printable(f"  ~ {line.fate}: {line.text}"), "yellow")
    number = line.new if line.new is not None else line.old
    text = printable(f"  {number or '':>5} {line.sign} {line.text}".rstrip())
    return style(text, "dim" if line.read else _STYLES.get(line.sign))


def _show_kept(found: ReviewKept) -> None:
    answer(f"{found.id}: {counted(found.unread, 'changed line')} unread")
    for one in found.comments:
        narrate(printable(comment_line(one)))


def _show_comments(found: ReviewKept) -> None:
    for one in found.comments:
        answer(printable(comment_line(one)))
    if any(one.delivery == "draft" for one in found.comments):
        narrate_hint(as_command("af", "review", found.id, "--send"))


def _show_sent(found: ReviewSent) -> None:
    if found.delivery is None:
        narrate(f"No comment on {found.id} is waiting to be sent.")
        return
    answer(printable(f"{found.id} {found.delivery.told}"))
    for hint in found.delivery.hints:
        narrate_hint(hint)


def _show_decision(part: Any) -> None:
    if not isinstance(part, ReviewDecided):
        show_landing(part)
    elif part.undone:
        answer(printable(f"{part.kept.id}: undone: {part.undone}"))
    elif part.sent:
        answer(f"{part.kept.id} rejected")
        _show_sent(part.sent)
    else:
        answer(f"{part.kept.id} approved: it is in the landing queue")
        narrate_hint("af land --status")


def _one(typed: dict[str, Any]) -> dict[str, Any]:
    if len(typed["ids"]) != 1:
        raise UsageError("Name one builder", hint="af review ID")
    return {"id": typed["ids"][0]}


def _commenting(typed: dict[str, Any]) -> dict[str, Any]:
    found = {**_one(typed), "text": typed["comment"]}
    if typed["at"] is None:
        return found
    place = _PLACE.fullmatch(typed["at"])
    if place is None:
        raise UsageError(f"{typed['at']} is not a place in a file", why="Write file.py:12 or file.py:12-15.")
    numbers = {name: int(value) for name in ("first", "last") if (value := place[name])}
    return {**found, **numbers, "file": place["file"]}


def _deciding(decision: str) -> Any:
    def build(typed: dict[str, Any]) -> dict[str, Any]:
        reason = typed["reject"] if decision == "reject" else None
        return {**_one(typed), "decision": decision, "reason": reason}

    return build


def _open_screen(typed: Typed) -> int | None:
    """Asks git while Textual loads, which takes longer than any other import."""
    if typed.as_json or typed.values["list"] or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    context, request = typed.context, typed.request
    farm = context.farm
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(queue_and_first, context, request)
        from agent_farm.board.keyed_app import KeyedApp
        from agent_farm.board.review_screen import ReviewScreen

        KeyedApp(ReviewScreen(farm.root, farm.paths.name, tuple(request.ids), first=first)).show()
    return 0


review = command_of(
    Way("review", _show_queue, before=_open_screen),
    others={
        "show": Way("review_show", _show_result, build=_one),
        "all": Way("review_show", _show_result, build=lambda typed: {**_one(typed), "whole": True}),
        "read": Way("review_mark", _show_kept, build=_one),
        "unread": Way("review_mark", _show_kept, build=_one),
        "comment": Way("review_comment", _show_comments, build=_commenting),
        "send": Way("review_send", _show_sent, build=_one),
        "approve": Way("review_decide", _show_decision, build=_deciding("approve")),
        "reject": Way("review_decide", _show_decision, build=_deciding("reject")),
        "undo": Way("review_decide", _show_decision, build=_deciding("undo")),
    },
    also=[
        click.Option(["--list"], is_flag=True, help="Print the list, even in a terminal."),
        click.Option(["--show"], is_flag=True, help="Print what is new in a result since it was read."),
        click.Option(["--all"], is_flag=True, help="Print the whole result."),
        click.Option(["--read"], is_flag=True, help="Mark the result, or a --file of it, as read."),
        click.Option(["--unread"], is_flag=True, help="Mark the result, or a --file of it, as unread."),
        click.Option(["--file"], metavar="FILE", help="Only this file."),
        click.Option(["--comment"], metavar="TEXT", help="Draft a comment."),
        click.Option(
            ["--at"],
            metavar="FILE:LINE[-LAST]",
            help="Lines the comment is about; default: the whole result.",
        ),
        click.Option(["--send"], is_flag=True, help="Send the drafts to the builder, as one message."),
        click.Option(["--approve"], is_flag=True, help="Put the result into the landing queue."),
        click.Option(["--reject"], metavar="REASON", help="Send the result back to its builder."),
        click.Option(["--undo"], is_flag=True, help="Undo the last mark, approval or rejection."),
        click.Option(["--yes", "-y"], is_flag=True, help="Approve the checks that the repository declares."),
    ],
    epilog="""\b
~ changes that were read and are none any more
… lines folded: as before, moved, generated, other white space
""",
)

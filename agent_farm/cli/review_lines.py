"""The text above and between the lines of a result, with styles, for printing and for the screen."""

from __future__ import annotations

from collections.abc import Iterator

from agent_farm.operations.review import ReviewItem
from agent_farm.operations.review_show import ReviewShown
from agent_farm.review.kept import Comment

_MOST_FILES, _MOST_OTHERS = 5, 5


def evidence(found: ReviewShown, item: ReviewItem | None = None) -> Iterator[tuple[str, str | None]]:
    """What is known before a line of it is read; `item` is its place in the queue."""
    proof = found.proof
    if proof is None:
        yield "no check has run on it", "yellow"
    else:
        said = f": {proof.reason}" if proof.reason else ""
        yield f"{proof.state}{said}", "green" if proof.state == "proven" else "red"
        for check in proof.checks:
            if not check.passed:
                yield f"{check.name} failed: {check.command}, its output is in {check.log}", "red"
        for flag in proof.flags:
            yield f"! {flag.kind}  {flag.told}", "yellow"
    if item and item.overlaps:
        shared = sorted({path for one in item.overlaps for path in one.files})
        names = ", ".join(one.id for one in item.overlaps[:_MOST_OTHERS])
        yield f"shares {', '.join(shared[:3])}{' …' if len(shared) > 3 else ''} with {names}", None
    if found.left_behind:
        yield f"not committed, so not in it: {', '.join(found.left_behind[:_MOST_FILES])}", "yellow"
    if found.lost:
        yield "git no longer has the commits that were read: all of it is unread", "yellow"
    if found.decision:
        why = f": {found.decision.reason}" if found.decision.reason else ""
        yield f"{found.decision.word}{why}", "cyan"


def comment_line(one: Comment) -> str:
    state = one.fate if one.delivery == "submitted" else one.delivery
    return f"“{' '.join(one.text.split())}” [{state}] {one.place}".rstrip()

"""`review_show`: what is new in a result since it was read; and how a result is found and described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, structs

from agent_farm.builders.proof import Proof
from agent_farm.builders.record import BuilderRecord
from agent_farm.documents import load_if_whole
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status
from agent_farm.git.changes import tree_state
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import git_deadline
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.review.diff_as_read import FileRead, files_read, only_unread
from agent_farm.review.kept import Comment, Decision
from agent_farm.review.rounds import Result, Trouble, heads_of, results_of

# Far more than git needs; a FIFO named `.gitignore` would make it wait for ever.
REVIEW_SECONDS = 60.0
_MOST_LINES = 20_000


class Reviewed(Answer, kw_only=True):
    """One result: the difference between the commits `start` and `tip`.

    `decision` is about this very `tip`.
    """

    id: str
    title: str
    state: str
    branch: str | None
    start: str
    tip: str
    proof: Proof | None
    comments: tuple[Comment, ...]
    decision: Decision | None
    undoable: Annotated[str | None, Meta(description="What an undo would take back")]
    lost: Annotated[
        bool, Meta(description="git no longer has the commits that were read, so all of it is unread")
    ]


def proofs_of(farm: Farm, results: Sequence[Result]) -> dict[str, Proof]:
    """Each proof as it stands now; a review does not ask whether files are uncommitted."""
    found = ((one, load_if_whole(farm.run(one.record.id).proof, Proof)) for one in results)
    known = {one.record.id: (one.round.tip, proof) for one, proof in found if proof}
    refs = {proof.target_ref for _, proof in known.values()}
    targets = resolve_commits(farm.repository, refs) if refs else {}
    return {
        id: proof.judged_now(
            work=tip, target=targets.get(proof.target_ref), changed=proof.state == "uncommitted"
        )
        for id, (tip, proof) in known.items()
    }


def facts_of(result: Result, proof: Proof | None, states: Mapping[str, str]) -> dict[str, Any]:
    record, decision, past = result.record, result.kept.decision, result.kept.past
    return {
        "id": record.id,
        "title": record.title,
        "state": states.get(record.id, "unknown"),
        "branch": result.branch,
        "start": result.round.start,
        "tip": result.round.tip,
        "proof": proof,
        "comments": result.comments,
        "decision": decision if decision and decision.tip == result.round.tip else None,
        "undoable": past[-1].done if past else None,
        "lost": result.lost,
    }


class ReviewShow(Request):
    id: BuilderId
    whole: Annotated[bool, Meta(description="Include everything, even what was read before")] = False
    file: Annotated[str | None, Meta(description="Only this file, with all of its lines")] = None
    tokens: Annotated[bool, Meta(description="For each line, say which parts are keywords, strings …")] = (
        False
    )
    most: Annotated[
        int,
        Meta(ge=1, le=_MOST_LINES, description="Maximum number of lines; later files come without theirs"),
    ] = _MOST_LINES


class ReviewShown(Reviewed, kw_only=True):
    """`files` are those with something new to read, unless `whole`. `cut` are given without their lines."""

    files: tuple[FileRead, ...]
    cut: tuple[str, ...]
    left_behind: Annotated[tuple[str, ...], Meta(description="Uncommitted files, which are not in it")]


@reads(
    "Show what is new in a result since it was read",
    details="A line that was read stays read through commits, amends and rebases until it changes.",
    elsewhere="home",
)
def review_show(context: Context, request: ReviewShow) -> ReviewShown:
    farm = context.farm
    record = choose(context, request.id)
    with git_deadline(REVIEW_SECONDS):
        result = require_result(farm, record)
        files = files_read(result.files, result.marks)
        if request.file is not None:
            files = tuple(file for file in files if file.path == request.file)
        elif not request.whole:
            files = only_unread(files)
        if request.tokens:
            from agent_farm.review.syntax import with_tokens  # loads Pygments, which few callers need

            files = tuple(map(with_tokens, files))
        states = {record.id: read_status(farm, record).state}
        facts = facts_of(result, proofs_of(farm, [result]).get(record.id), states)
        return shown_result(files, facts, left_behind(farm, record), request.most)


def shown_result(
    files: Iterable[FileRead],
    facts: Mapping[str, Any],
    left_behind: tuple[str, ...] = (),
    most: int = _MOST_LINES,
) -> ReviewShown:
    shown, cut = _bounded(files, most)
    return ReviewShown(**facts, files=shown, cut=cut, left_behind=left_behind)


def require_result(farm: Farm, record: BuilderRecord, tip: str | None = None) -> Result:
    """The result for the given commit, or for what is checked out."""
    if not record.is_made:
        raise NotFound(f"{record.id} has not started", why="It has no work yet.", hint="af queue")
    (found,) = results_of(farm, heads_of(farm, [record]), tip)
    if isinstance(found, Trouble):
        raise found.error
    return found


def _bounded(files: Iterable[FileRead], most: int) -> tuple[tuple[FileRead, ...], tuple[str, ...]]:
    shown: list[FileRead] = []
    cut: list[str] = []
    left = most
    for file in files:
        left -= sum(len(hunk.lines) for hunk in file.hunks)
        shown.append(file if left >= 0 else structs.replace(file, hunks=()))
        cut += [] if left >= 0 else [file.path]
    return tuple(shown), tuple(cut)


def left_behind(farm: Farm, record: BuilderRecord) -> tuple[str, ...]:
    """Uncommitted files; none if the worktree cannot be asked."""
    try:
        tree = farm.tree_if_there(record)
        state = tree_state(tree) if tree else None
    except AgentFarmError:
        return ()
    return (*state.dirty, *state.untracked) if state else ()

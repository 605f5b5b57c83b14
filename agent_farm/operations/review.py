"""`review`, `review_show`: results that wait for a person, riskiest first, and what is new in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, structs

from agent_farm.builders.proof import Proof, load_proof
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import FINISHED
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.farm.landing_places import landing_places, merged_commit
from agent_farm.farm.listing import read_status, read_statuses
from agent_farm.git.asking import side_by_side
from agent_farm.git.changes import tree_state
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import git_deadline
from agent_farm.git.landed import have_landed, landed_plainly
from agent_farm.operations.builders import BuilderId, BuilderIds, choose, choose_each
from agent_farm.operations.operation import Answer, Context, Failure, Operation, Request, single
from agent_farm.review.diff_as_read import FileRead, counted, files_read, only_unread
from agent_farm.review.kept import Comment, Decision, Round
from agent_farm.review.risk_order import risk_of
from agent_farm.review.rounds import Result, Trouble, results_of, rounds_of

# Far more than git needs; a FIFO that somebody named `.gitignore` would have it wait for ever.
_SECONDS = 60.0
_LANDED_SECONDS = 5.0
_MOST_LINES = 20_000
_READY = {*FINISHED, "idle", "waiting", "limited"}


class Review(Request):
    ids: BuilderIds = ()


class Overlap(Answer):
    """Another result that changes the same files."""

    id: str
    files: tuple[str, ...]


class Reviewed(Answer, kw_only=True):
    """One result. `start` and `tip` are the commits that it is the difference of.

    `decision` was made about this very `tip`.
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
        bool, Meta(description="Git no longer has the commits that were read, so that all of it is unread")
    ]


class ReviewItem(Reviewed, kw_only=True):
    """One in the queue; `unread` counts changed lines that were not read yet."""

    files: int
    added: int
    removed: int
    unread: int
    risk: Annotated[int, Meta(description="The higher, the sooner a person should look at it")]
    reasons: Annotated[tuple[str, ...], Meta(description="Why it is risky")]
    overlaps: tuple[Overlap, ...]

    @property
    def progress(self) -> str:
        """How far its review is, in a word."""
        if self.decision:
            return self.decision.word
        return f"{self.unread} unread" if self.unread else "read"


class ReviewQueue(Answer):
    """Riskiest first; what is approved, rejected or read comes last. `failed` cannot be read."""

    items: tuple[ReviewItem, ...]
    failed: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class _Look:
    queue: ReviewQueue
    results: Mapping[str, Result]
    proofs: Mapping[str, Proof]
    states: Mapping[str, str]


def queue_and_first(
    context: Context, request: Review, at: str | None = None
) -> tuple[ReviewQueue, ReviewShown | None]:
    """And what is new in one of them, of the same look: in the riskiest, or the one named.

    One that has landed is in no queue: it is looked at alone.
    """
    look = _looked(context, request)
    if at is not None and at not in look.results:
        look = _looked(context, Review(ids=(at,)))
    id = at or next((item.id for item in look.queue.items), None)
    result = look.results.get(id or "")
    if result is None:
        return look.queue, None
    files = only_unread(files_read(result.files, result.marks))
    facts = _facts(result, look.proofs.get(result.record.id), look.states)
    with git_deadline(_SECONDS):
        return look.queue, _shown(context.farm, result, files, facts)


def _review(context: Context, request: Review) -> ReviewQueue:
    return _looked(context, request).queue


def _looked(context: Context, request: Review) -> _Look:
    farm = context.farm
    if request.ids:
        records, unknown = choose_each(context, request.ids)
    else:
        records, unknown = list(farm.records().values()), ()
    made = [record for record in records if record.is_made]
    with git_deadline(_SECONDS):
        rounds = rounds_of(farm, made)
        questions: dict[str, Callable[[], Any]] = {
            "results": partial(results_of, farm, rounds),
            "landed": partial(_landed, farm, made, {} if request.ids else rounds.of),
            "states": partial(read_statuses, farm, made),
        }
        answers: dict[str, Any] = dict(side_by_side(questions, workers=len(questions)))
        for answer in answers.values():
            if isinstance(answer, AgentFarmError):
                raise answer
        states = {id: status.state for id, status in answers["states"].items()}
        found: list[Result | Trouble] = answers["results"]
        results = [one for one in found if isinstance(one, Result) and one.record.id not in answers["landed"]]
        if not request.ids:
            results = [one for one in results if one.files or one.marks.gone]
        proofs = _proofs(farm, results)
    failed = (Failure.of(one.record.id, one.error) for one in found if isinstance(one, Trouble))
    items = sorted(_items(results, proofs, states), key=_place)
    queue = ReviewQueue(tuple(items), (*unknown, *failed))
    return _Look(queue, {one.record.id: one for one in results}, proofs, states)


def _place(item: ReviewItem) -> tuple[bool, bool, bool, int, str]:
    return (item.decision is not None, item.unread == 0, item.state not in _READY, -item.risk, item.id)


def _landed(farm: Farm, records: Iterable[BuilderRecord], rounds: Mapping[str, Round]) -> set[str]:
    tips = {id: one.tip for id, one in rounds.items() if one.tip != one.start}
    bases = {one.id: one.base for one in records if one.id in tips}
    landed: set[str] = set()
    for base in set(bases.values()):
        mine = {id: tips[id] for id in bases if bases[id] == base}
        known = resolve_commits(farm.repository, landing_places(farm, base))
        targets = sorted({commit for commit in known.values() if commit})
        plain = landed_plainly(
            farm.repository, {id: [tip] for id, tip in mine.items()}, targets, timeout=_LANDED_SECONDS
        )
        for id, tip in mine.items():
            said = True if merged_commit(farm, id) == tip else plain.get(id)
            if said is None:
                said = have_landed(farm.repository, [tip], targets, timeout=_LANDED_SECONDS)
            landed |= {id} if said else set()
    return landed


def _items(
    results: Sequence[Result], proofs: Mapping[str, Proof], states: Mapping[str, str]
) -> list[ReviewItem]:
    paths = {
        one.record.id: {path for file in one.files for path in (file.path, file.former)} for one in results
    }
    return [_item(one, proofs.get(one.record.id), states, paths) for one in results]


def _proofs(farm: Farm, results: Sequence[Result]) -> dict[str, Proof]:
    """As they stand now. Whether something is uncommitted is nobody's question here: it is not read."""
    kept = {one.record.id: (one.round.tip, load_proof(farm.run(one.record.id).proof)) for one in results}
    known = {id: (tip, proof) for id, (tip, proof) in kept.items() if proof}
    refs = {proof.target_ref for _, proof in known.values()}
    targets = resolve_commits(farm.repository, refs) if refs else {}
    return {
        id: proof.judged_now(
            work=tip, target=targets.get(proof.target_ref), changed=proof.state == "uncommitted"
        )
        for id, (tip, proof) in known.items()
    }


def _item(
    result: Result, proof: Proof | None, states: Mapping[str, str], paths: Mapping[str, set[str]]
) -> ReviewItem:
    own = paths[result.record.id]
    shared = {id: sorted(own & other) for id, other in paths.items() if id != result.record.id}
    overlaps = tuple(Overlap(id, tuple(some)) for id, some in shared.items() if some)
    added, removed, unread = counted(result.files, result.marks)
    risk, reasons = risk_of(proof, lines=added + removed, overlaps=[one.id for one in overlaps])
    return ReviewItem(
        **_facts(result, proof, states),
        files=len(result.files),
        added=added,
        removed=removed,
        unread=unread,
        risk=risk,
        reasons=reasons,
        overlaps=overlaps,
    )


def _facts(result: Result, proof: Proof | None, states: Mapping[str, str]) -> dict[str, Any]:
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
    whole: Annotated[bool, Meta(description="Answer with all of it, what was read before as well")] = False
    file: Annotated[str | None, Meta(description="Of this file only, and all of its lines")] = None
    tokens: Annotated[bool, Meta(description="Say of each line which parts are keywords, strings …")] = False
    most: Annotated[
        int, Meta(ge=1, le=_MOST_LINES, description="Lines to answer with; later files come without theirs")
    ] = _MOST_LINES


class ReviewShown(Reviewed, kw_only=True):
    """`files` are those with something new to read, unless `whole`. `cut` came without their lines."""

    files: tuple[FileRead, ...]
    cut: tuple[str, ...]
    left_behind: Annotated[tuple[str, ...], Meta(description="Uncommitted files, which are not in it")]


def _show(context: Context, request: ReviewShow) -> ReviewShown:
    farm = context.farm
    record = choose(context, request.id)
    with git_deadline(_SECONDS):
        result = require_result(farm, record)
        files = files_read(result.files, result.marks)
        if request.file is not None:
            files = tuple(file for file in files if file.path == request.file)
        elif not request.whole:
            files = only_unread(files)
        if request.tokens:
            from agent_farm.review.syntax import with_tokens  # Pygments, which few callers ask for

            files = tuple(map(with_tokens, files))
        states = {record.id: read_status(farm, record).state}
        facts = _facts(result, _proofs(farm, [result]).get(record.id), states)
        return _shown(farm, result, files, facts, request.most)


def _shown(
    farm: Farm,
    result: Result,
    files: Iterable[FileRead],
    facts: Mapping[str, Any],
    most: int = _MOST_LINES,
) -> ReviewShown:
    shown, cut = _bounded(files, most)
    return ReviewShown(**facts, files=shown, cut=cut, left_behind=_left_behind(farm, result.record))


def require_result(farm: Farm, record: BuilderRecord, tip: str | None = None) -> Result:
    """Of the commit named, or of what is checked out."""
    if not record.is_made:
        raise NotFound(f"{record.id} has not begun", why="It has made nothing yet.", hint="af queue")
    (found,) = results_of(farm, rounds_of(farm, [record], {record.id: tip} if tip else None))
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


def _left_behind(farm: Farm, record: BuilderRecord) -> tuple[str, ...]:
    """None where the worktree cannot say."""
    try:
        tree = farm.tree_if_there(record)
        state = tree_state(tree) if tree else None
    except AgentFarmError:
        return ()
    return (*state.dirty, *state.untracked) if state else ()


REVIEW = Operation(
    "review",
    "List results to review, riskiest first",
    Review,
    ReviewQueue,
    single(_review),
    effect="reads",
    tolerant=True,
    pool="look",
    details="Without ids: all that is committed and has not landed. What was read, approved or rejected"
    " comes last.",
)
REVIEW_SHOW = Operation(
    "review_show",
    "Show what is new in a result since it was read",
    ReviewShow,
    ReviewShown,
    single(_show),
    effect="reads",
    tolerant=True,
    pool="look",
    details="A line that was read stays read through later commits, amends and rebases, until it changes.",
)

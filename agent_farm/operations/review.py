"""`review`: list results that wait for a person, riskiest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct

from agent_farm.builders.proof import Proof
from agent_farm.builders.status import FINISHED
from agent_farm.farm.farm import Farm
from agent_farm.farm.landing_places import landing_places, merged_commit
from agent_farm.farm.listing import read_statuses
from agent_farm.git.asking import all_at_once, side_by_side
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import git_deadline
from agent_farm.git.landed import have_landed, landed_plainly
from agent_farm.operations.builders import BuilderIds, choose_each
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Failure, Request, exit_code_of
from agent_farm.operations.review_show import (
    REVIEW_SECONDS,
    Reviewed,
    ReviewShown,
    facts_of,
    proofs_of,
    shown_result,
)
from agent_farm.review.diff_as_read import counted, files_read, only_unread
from agent_farm.review.risk_order import risk_of
from agent_farm.review.rounds import Heads, Result, Trouble, heads_of, results_of

_LANDED_SECONDS = 5.0
_READY = {*FINISHED, "idle", "waiting", "limited"}


class Review(Request):
    ids: BuilderIds = ()


class Overlap(Answer):
    """Another result that changes the same files."""

    id: str
    files: tuple[str, ...]


class ReviewItem(Reviewed, kw_only=True):
    """A result in the queue; `unread` counts changed lines that were not read yet."""

    files: int
    added: int
    removed: int
    unread: int
    risk: Annotated[int, Meta(description="The higher it is, the sooner a person should look at the result")]
    reasons: Annotated[tuple[str, ...], Meta(description="Why it is risky")]
    overlaps: tuple[Overlap, ...]

    @property
    def progress(self) -> str:
        """How far its review has got, in a word or two."""
        if self.decision:
            return self.decision.word
        if not self.files:
            return "no changes"
        return f"{self.unread} unread" if self.unread else "read"


class ReviewQueue(Answer):
    """Riskiest first; what was approved, rejected or read comes last. `failed` cannot be read."""

    items: tuple[ReviewItem, ...]
    failed: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.failed)


class _Look(Struct, frozen=True):
    queue: ReviewQueue
    results: Mapping[str, Result]
    proofs: Mapping[str, Proof]
    states: Mapping[str, str]


def queue_and_first(
    context: Context, request: Review, at: str | None = None
) -> tuple[ReviewQueue, ReviewShown | None]:
    """The queue, and from the same look what is new in one result: the riskiest, or the one at `at`.

    A result that has landed is not in the queue, and is looked at alone. Uncommitted files are not looked
    for, because that takes long in a large worktree.
    """
    if context.farm.paths.fleet.exists():
        from agent_farm.operations.fleet.elsewhere import reviewed_here

        context = reviewed_here(context, request.ids)
    look = _looked(context, request)
    if at is not None and at not in look.results:
        look = _looked(context, Review(ids=(at,)))
    id = at or next((item.id for item in look.queue.items), None)
    result = look.results.get(id or "")
    if result is None:
        return look.queue, None
    files = only_unread(files_read(result.files, result.marks))
    facts = facts_of(result, look.proofs.get(result.record.id), look.states)
    return look.queue, shown_result(files, facts)


@reads(
    "List results to review, riskiest first",
    details="Without ids: all committed work that has not landed. Results that were read, approved or"
    " rejected come last.",
    elsewhere="home",
)
def review(context: Context, request: Review) -> ReviewQueue:
    return _looked(context, request).queue


def _looked(context: Context, request: Review) -> _Look:
    farm = context.farm
    if request.ids:
        records, unknown = choose_each(context, request.ids)
    else:
        records, unknown = list(farm.records().values()), ()
    made = [record for record in records if record.is_made]
    with git_deadline(REVIEW_SECONDS):
        heads = heads_of(farm, made)
        questions: dict[str, Callable[[], Any]] = {
            "results": partial(results_of, farm, heads),
            "landed": partial(_landed, farm, Heads((), {}, {}) if request.ids else heads),
            "states": partial(read_statuses, farm, made),
        }
        answers = all_at_once(questions)
        states = {id: status.state for id, status in answers["states"].items()}
        found: list[Result | Trouble] = answers["results"]
        landed = answers["landed"]
        results = [
            one
            for one in found
            if isinstance(one, Result)
            and (one.round.tip != landed.get(one.record.id) or one.round.tip == one.round.start)
        ]
        if not request.ids:
            results = [one for one in results if one.files or one.marks.gone]
        proofs = proofs_of(farm, results)
    failed = (Failure.of(one.record.id, one.error) for one in found if isinstance(one, Trouble))
    items = sorted(_items(results, proofs, states), key=_place)
    queue = ReviewQueue(tuple(items), (*unknown, *failed))
    return _Look(queue, {one.record.id: one for one in results}, proofs, states)


def _place(item: ReviewItem) -> tuple[bool, bool, bool, int, str]:
    return (item.decision is not None, item.unread == 0, item.state not in _READY, -item.risk, item.id)


def _landed(farm: Farm, heads: Heads) -> dict[str, str]:
    """The tips that have landed, by builder."""
    landed: dict[str, str] = {}
    for base in {record.base for record in heads.records}:
        names = {
            one.id: heads.of[one.id].name for one in heads.records if one.base == base and one.id in heads.of
        }
        places = landing_places(farm, base)
        known = resolve_commits(farm.repository, [*places, *names.values()])
        targets = sorted({commit for place in places if (commit := known[place])})
        tips = {id: commit for id, name in names.items() if (commit := known[name])}
        said = landed_plainly(
            farm.repository, {id: [tip] for id, tip in tips.items()}, targets, timeout=_LANDED_SECONDS
        )
        said |= {id: True for id, tip in tips.items() if merged_commit(farm, id) == tip}
        ask = partial(have_landed, farm.repository, targets=targets, timeout=_LANDED_SECONDS)
        rest = side_by_side({id: partial(ask, [tip]) for id, tip in tips.items() if id not in said})
        landed |= {id: tips[id] for id, is_there in {**said, **rest}.items() if is_there is True}
    return landed


def _items(
    results: Sequence[Result], proofs: Mapping[str, Proof], states: Mapping[str, str]
) -> list[ReviewItem]:
    paths = {
        one.record.id: {path for file in one.files for path in (file.path, file.former)} for one in results
    }
    return [_item(one, proofs.get(one.record.id), states, paths) for one in results]


def _item(
    result: Result, proof: Proof | None, states: Mapping[str, str], paths: Mapping[str, set[str]]
) -> ReviewItem:
    own = paths[result.record.id]
    shared = {id: sorted(own & other) for id, other in paths.items() if id != result.record.id}
    overlaps = tuple(Overlap(id, tuple(some)) for id, some in shared.items() if some)
    added, removed, unread = counted(result.files, result.marks)
    risk, reasons = risk_of(proof, lines=added + removed, overlaps=[one.id for one in overlaps])
    return ReviewItem(
        **facts_of(result, proof, states),
        files=len(result.files),
        added=added,
        removed=removed,
        unread=unread,
        risk=risk,
        reasons=reasons,
        overlaps=overlaps,
    )

"""`compare`: rank several builders with the same task by the checks and each other's tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

from msgspec import Meta

from agent_farm.builders.events import Usage
from agent_farm.builders.proof import Proof
from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import UsageError
from agent_farm.farm.declared_checks import agree_to_checks
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import Builder
from agent_farm.git.git_process import paths_of, run_git
from agent_farm.landing.contest.comparisons import remember
from agent_farm.landing.contest.cross_tests import Candidate, CrossTest, cross_tests, new_tests
from agent_farm.landing.contest.ranking import MOST, Standing, ranked
from agent_farm.landing.flags.languages import is_test
from agent_farm.landing.proving import prove, require_checks
from agent_farm.landing.train.risk import Tally, load_record
from agent_farm.landing.verdicts import Reuse
from agent_farm.operations.builders import BuilderIds, Yes, choose_all, described
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import Answer, Context, Request

# Flags that mean that tests may prove less than they seem to.
_GRAVE = (
    "only-checks",
    "unreadable",
    "exit-forced",
    "test-deleted",
    "test-skipped",
    "test-weakened",
    "knows-tests",
)


class Compare(Request):
    ids: Annotated[BuilderIds, Meta(min_length=2)]
    again: Annotated[bool, Meta(description="Run the checks again even if their result is known")] = False
    yes: Yes = False


class Compared(Answer):
    """One of several builders. Its changes are counted against its target; `tests` are new or changed ones.

    `chance`: how likely it is right, judging by all tests; null if it is not proven. `seconds`: from its
    start to its last report. `won` and `lost`: how often its runtime was kept or removed after a comparison
    here.
    """

    id: str
    rank: int
    chance: float | None
    reasons: tuple[str, ...]
    runtime: str
    model: str | None
    proof: Proof
    files: int
    added: int
    deleted: int
    tests: tuple[str, ...]
    usage: Usage | None
    seconds: float | None
    won: int
    lost: int


class Comparison(Answer):
    """The best first. `decided` is false if no test tells the first two apart."""

    into: str
    builders: tuple[Compared, ...]
    tests: tuple[CrossTest, ...]
    decided: bool

    @property
    def exit_code(self) -> int:
        return 0 if self.builders[0].chance is not None else 1


@acts(
    "Rank builders that had the same task, by each one's new tests run on the others' code",
    repeats=True,
    pool="check",
    details="Each is checked as by `check`. Then each pair is checked in a clean worktree with the code"
    " of one, the tests of the target and the new tests of the other. Results are kept: the same"
    " tree is not checked twice. `keep` keeps one and removes the others.",
    elsewhere="home",
)
def compare(context: Context, request: Compare) -> Comparison:
    farm = context.farm
    records = choose_all(context, request.ids)
    _require_comparable(records)
    checks = require_checks(farm)
    agree_to_checks(farm, checks, yes=request.yes, ask=context.ask)
    reuse: Reuse = "none" if request.again else "all"
    proofs = {}
    for done, record in enumerate(records):
        context.tell(f"Checking {record.id}")
        farm.step("Checking", done, len(records))
        proofs[record.id] = prove(farm, record, reuse=reuse)
    if len(targets := {proof.into for proof in proofs.values()}) > 1:
        why = f"Their targets are {' and '.join(sorted(targets))}."
        raise UsageError("Only work for the same branch can be compared", why=why)
    candidates = {
        id: Candidate(id, proof.work, proof.target, proof.tree)
        for id, proof in proofs.items()
        if proof.passed and proof.tree
    }
    crossed = list(cross_tests(farm, list(candidates.values()), checks, reuse=reuse, tell=context.tell))
    remember(farm.paths.comparisons, {id: proof.work for id, proof in proofs.items()})
    tests = {id: new_tests(farm, one) for id, one in candidates.items()}
    return _comparison(farm, records, proofs, tests, crossed)


def _require_comparable(records: Sequence[BuilderRecord]) -> None:
    if len(records) < 2:
        raise UsageError("Name at least two builders", hint="af compare --help")
    if len(records) > MOST:
        raise UsageError(f"At most {MOST} builders can be compared", why=f"These are {len(records)}.")


def _comparison(
    farm: Farm,
    records: Sequence[BuilderRecord],
    proofs: dict[str, Proof],
    tests: dict[str, tuple[str, ...]],
    crossed: Sequence[CrossTest],
) -> Comparison:
    builders = {one.record.id: one for one in described(farm, proofs)}
    sizes = {id: _size(farm, proof) for id, proof in proofs.items()}
    standings = [_standing(proofs[id], sizes[id], one.usage, id) for id, one in builders.items()]
    places = ranked(standings, {(one.tests_of, one.on): one.passed for one in crossed})
    record = load_record(farm.paths.landing_record)
    found = []
    for place in places:
        one, size = builders[place.id], sizes[place.id]
        tally = record.runtimes.get(one.record.runtime, Tally())
        found.append(
            Compared(
                id=place.id,
                rank=place.rank,
                chance=None if place.chance is None else round(place.chance, 4),
                reasons=place.reasons,
                runtime=one.record.runtime,
                model=one.record.model,
                proof=proofs[place.id],
                files=size.files,
                added=size.added,
                deleted=size.deleted,
                tests=tests.get(place.id, ()),
                usage=one.usage,
                seconds=_seconds(one),
                won=tally.won,
                lost=tally.lost,
            )
        )
    chances = [round(one.chance or 0.0, 2) for one in found]
    return Comparison(proofs[found[0].id].into, tuple(found), tuple(crossed), chances[0] > chances[1])


class Size(NamedTuple):
    """`lines` counts changed lines outside tests: writing more tests must not lower a rank."""

    files: int
    added: int
    deleted: int
    lines: int


def _standing(proof: Proof, size: Size, usage: Usage | None, id: str) -> Standing:
    flags = tuple(dict.fromkeys(flag.kind for flag in proof.flags if flag.kind in _GRAVE))
    against = None if proof.passed else proof.reason or proof.state
    return Standing(id, against, flags, size.lines, (usage and usage.cost) or math.inf)


def _size(farm: Farm, proof: Proof) -> Size:
    """Changes since it left its target; a binary file has no lines."""
    span = f"{proof.target}...{proof.work}"
    rows = paths_of(run_git(farm.root, "diff", "--numstat", "-z", "--no-renames", span, "--"))
    counts = [
        (int(added), int(deleted), path)
        for added, deleted, path in (row.replace("-\t-\t", "0\t0\t", 1).split("\t", 2) for row in rows)
    ]
    outside = sum(added + deleted for added, deleted, path in counts if not is_test(path))
    return Size(len(counts), sum(one[0] for one in counts), sum(one[1] for one in counts), outside)


def _seconds(one: Builder) -> float | None:
    began = datetime.fromisoformat(one.record.created_at).timestamp()
    return None if one.status.at is None else max(0.0, round(one.status.at - began, 1))

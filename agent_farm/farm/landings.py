"""Whether builders' commits have landed, as `af prune` asks it, for many builders and within a bound.

One builder takes about twenty questions to git. So an answer is remembered with the commits it was asked of,
and is asked again only when the builder's or a target's are others.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.git.changes import TreeState
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.landed import have_landed, landing_targets
from agent_farm.git.landed_at_once import landed_plainly


@dataclass(frozen=True, slots=True)
class Landing:
    """`landed` is None where it is not known; `asked_of` stands for the commits that were asked about."""

    landed: bool | None = None
    asked_of: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Question:
    tips: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        return hashlib.sha256(" ".join((*self.tips, "-", *self.targets)).encode()).hexdigest()[:16]


def read_landings(
    farm: Farm,
    records: Sequence[BuilderRecord],
    trees: Mapping[str, TreeState],
    remembered: Mapping[str, Landing],
    *,
    seconds: float,
) -> dict[str, Landing]:
    """By builder id, for those whose worktree is in `trees`; what there is no time for is not known."""
    deadline = time.monotonic() + seconds
    try:
        questions = _questions(farm, [record for record in records if record.id in trees], trees, seconds)
        answers = {
            id: known
            for id, question in questions.items()
            if (known := remembered.get(id)) and known.asked_of == question.name and known.landed is not None
        }
        answers |= _plain(farm, {id: questions[id] for id in questions.keys() - answers.keys()}, seconds)
    except AgentFarmError:  # no answer in time
        return {}
    # the longest not asked come first: what is left over this time has its turn the next time
    order = sorted(questions.keys() - answers.keys(), key=lambda id: remembered.get(id, Landing()).at)
    return answers | _compared(farm, {id: questions[id] for id in order}, deadline)


def _questions(
    farm: Farm, records: Sequence[BuilderRecord], trees: Mapping[str, TreeState], seconds: float
) -> dict[str, _Question]:
    targets = {base: landing_targets(farm.repository, base) for base in {record.base for record in records}}
    branches = {record.id: f"refs/heads/{record.branch}" for record in records}
    names = {*branches.values(), *(name for names in targets.values() for name in names)}
    commits = resolve_commits(farm.repository, names, timeout=seconds)
    existing = {
        base: tuple(sorted({commit for name in names if (commit := commits[name])}))
        for base, names in targets.items()
    }
    tips = {record.id: {trees[record.id].head, commits[branches[record.id]]} - {None} for record in records}
    return {
        record.id: _Question(tuple(sorted(str(tip) for tip in tips[record.id])), existing[record.base])
        for record in records
        if tips[record.id]
    }


def _plain(farm: Farm, questions: Mapping[str, _Question], seconds: float) -> dict[str, Landing]:
    """What needs no comparison of content, asked for all builders that have the same targets at once."""
    answers = dict[str, Landing]()
    for targets in {question.targets for question in questions.values()}:
        tips = {id: question.tips for id, question in questions.items() if question.targets == targets}
        with suppress(AgentFarmError):  # no answer in time
            found = landed_plainly(farm.repository, tips, targets, timeout=seconds)
            now = time.time()
            answers |= {id: Landing(landed, questions[id].name, now) for id, landed in found.items()}
    return answers


def _compared(farm: Farm, questions: Mapping[str, _Question], deadline: float) -> dict[str, Landing]:
    """Asked in the order given, in threads that are not waited for once the time is over."""
    answers = dict[str, Landing]()
    waiting = list(questions)[::-1]

    def work() -> None:
        while waiting and (left := deadline - time.monotonic()) > 0:
            try:
                id = waiting.pop()
            except IndexError:  # another thread took the last one
                return
            question = questions[id]
            answers[id] = Landing(None, question.name, time.time())  # it had its turn, whatever comes of it
            landed = have_landed(farm.repository, question.tips, question.targets, timeout=left)
            answers[id] = Landing(landed, question.name, time.time())

    threads = [
        Thread(target=work, daemon=True) for _ in range(min(len(waiting), max(2, os.cpu_count() or 2)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(answers)

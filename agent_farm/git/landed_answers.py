"""What landed.py answers for many builders, in limited time: whether their commits have landed.

One builder takes about twenty questions to git. So an answer is remembered with the commits that it is
about, and asked for again only when the builder's commits or a target's have changed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from msgspec import Struct

from agent_farm.errors import AgentFarmError
from agent_farm.git.asking import Asking
from agent_farm.git.repository import Repository


class LandedAnswer(Struct, frozen=True):
    """`landed` is None if it is not known; `asked_of` identifies the commits that the question was about."""

    landed: bool | None = None
    asked_of: str = ""
    at: float = 0.0


class LandedQuestion(Struct, frozen=True):
    """Whether everything up to `tips` has landed on one of `targets`; all of them are commits."""

    tips: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join((*self.tips, "-", *self.targets))


def landed_answers(
    repository: Repository,
    questions: Mapping[str, LandedQuestion],
    remembered: Mapping[str, LandedAnswer],
    *,
    seconds: float,
) -> dict[str, LandedAnswer]:
    """By builder id, as in `questions`; builders for which there was no time are missing."""
    until = time.monotonic() + seconds
    answers = {
        id: known
        for id, question in questions.items()
        if (known := remembered.get(id)) and known.asked_of == question.name and known.landed is not None
    }
    if len(answers) == len(questions):
        return answers
    answers |= _plain(repository, {id: questions[id] for id in questions.keys() - answers.keys()}, seconds)
    # those not asked for the longest come first, so that whoever is left out now has its turn next time
    order = sorted(questions.keys() - answers.keys(), key=lambda id: remembered.get(id, LandedAnswer()).at)
    return answers | _compared(repository, {id: questions[id] for id in order}, until)


def _plain(
    repository: Repository, questions: Mapping[str, LandedQuestion], seconds: float
) -> dict[str, LandedAnswer]:
    """Answers that need no comparison of content, in one call for all builders with the same targets."""
    from agent_farm.git.landed import landed_plainly  # a status with nothing new to ask does not load it

    answers = dict[str, LandedAnswer]()
    for targets in {question.targets for question in questions.values()}:
        tips = {id: question.tips for id, question in questions.items() if question.targets == targets}
        with suppress(AgentFarmError):  # no answer in time
            found = landed_plainly(repository, tips, targets, timeout=seconds)
            now = time.time()
            answers |= {id: LandedAnswer(landed, questions[id].name, now) for id, landed in found.items()}
    return answers


def _compared(
    repository: Repository, questions: Mapping[str, LandedQuestion], until: float
) -> dict[str, LandedAnswer]:
    from agent_farm.git.landed import have_landed

    begun = dict[str, LandedAnswer]()

    def compare(id: str) -> LandedAnswer:
        question, left = questions[id], until - time.monotonic()
        begun[id] = LandedAnswer(None, question.name, time.time())  # it had its turn, whatever the result
        landed = have_landed(repository, question.tips, question.targets, timeout=left)
        return LandedAnswer(landed, question.name, time.time())

    answers = Asking({id: partial(compare, id) for id in questions}, until=until).answers()
    return dict(begun) | answers

"""Questions side by side, told in the order asked."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.git.asking import as_asked

PATIENCE = 120.0


def test_answers_come_in_the_order_asked_and_failures_among_them() -> None:
    last = threading.Event()

    def waits() -> int:
        assert last.wait(PATIENCE)
        return 1

    def fails() -> int:
        raise AgentFarmError("no such luck")

    def sets() -> int:
        last.set()
        return 3

    found = dict(as_asked({"one": waits, "two": fails, "three": sets}, workers=3))
    assert list(found) == ["one", "two", "three"]
    assert (found["one"], str(found["two"]), found["three"]) == (1, "no such luck", 3)


def test_each_is_told_before_later_ones_have_answered() -> None:
    go_on = threading.Event()
    answers = as_asked({1: lambda: 1, 2: lambda: go_on.wait(PATIENCE)}, workers=2)
    assert next(answers) == (1, 1)
    go_on.set()
    assert next(answers) == (2, True)


def test_an_interrupt_begins_no_further_one_and_tells_what_came_of_those_that_had_begun() -> None:
    asked = list[int]()
    goes_on = threading.Event()

    def question(number: int) -> Callable[[], int]:
        def ask() -> int:
            asked.append(number)
            if number == 1:
                assert goes_on.wait(PATIENCE)
            return number

        return ask

    answers = as_asked({number: question(number) for number in range(50)}, workers=2)
    assert next(answers) == (0, 0)
    goes_on.set()
    told = [answers.throw(KeyboardInterrupt)]
    with pytest.raises(KeyboardInterrupt):
        told.extend(answers)
    assert sorted(number for number, _ in told) == sorted(set(asked) - {0})


def test_a_ctrl_c_while_an_answer_is_told_loses_none() -> None:
    """It comes through once all that had begun are told."""
    told = list[int]()

    def tell_all() -> None:
        for number, _ in as_asked({number: lambda: 0 for number in range(5)}, workers=1):
            if number == 1:
                signal.raise_signal(signal.SIGINT)
            told.append(number)

    with pytest.raises(KeyboardInterrupt):
        tell_all()
    assert told[:2] == [0, 1]
    assert told == list(range(len(told)))


def test_a_bug_is_no_answer() -> None:
    def broken() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(as_asked({1: lambda: 1, 2: broken}))

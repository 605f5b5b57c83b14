"""What the queue decides: which group is checked, who is blamed, what may land before whom."""

from __future__ import annotations

from itertools import product

import pytest

from agent_farm.landing.train.ahead import checks_ahead
from agent_farm.landing.train.groups import expected_checks, first_group
from agent_farm.landing.train.line import (
    Blame,
    Check,
    Done,
    Land,
    LandingLine,
    Stuck,
    Waiting,
    next_step,
    with_added,
    with_clash,
    with_green,
    with_landed,
    with_moved_target,
    with_red,
    without,
)


def line_of(*risks: float, proven: bool = True) -> LandingLine:
    waiting = (Waiting("abcdefghij"[age], age, risk) for age, risk in enumerate(risks))
    return LandingLine(tuple(waiting), proven=proven)


def test_safe_ones_are_checked_together_and_risky_ones_alone() -> None:
    assert first_group([0.05] * 20) == 11
    assert first_group([0.28] * 20) == 2
    assert first_group([0.6] * 20) == 1


@pytest.mark.parametrize("risks", [[0.3] * 3, [0.05, 0.3, 0.6], [0.1, 0.1, 0.2, 0.5]])
def test_the_plan_expects_what_comes_of_it(risks: list[float]) -> None:
    """Over every possible outcome."""
    mean = 0.0
    for outcome in product((False, True), repeat=len(risks)):
        weight, checks = 1.0, 0
        for bad, risk in zip(outcome, risks, strict=True):
            weight *= risk if bad else 1 - risk
        bad_ones = {"abcdefghij"[place] for place, bad in enumerate(outcome) if bad}
        line = line_of(*risks)
        while not isinstance(step := next_step(line), Done):
            if isinstance(step, Check):
                checks += not step.again
                line = (with_red if bad_ones & set(step.group) else with_green)(line, step.group)
            elif isinstance(step, Land):
                assert not bad_ones & set(step.ids)
                line = with_landed(line, step.ids)
            elif isinstance(step, Blame):
                assert step.id in bad_ones
                line = without(line, step.id)
        mean += weight * checks
    assert mean == pytest.approx(expected_checks(risks))


def test_a_red_whole_with_a_green_half_has_the_rest_repeated_and_blamed() -> None:
    line = line_of(0.28, 0.28)
    assert next_step(line) == Check(("a", "b"))
    line = with_red(line, ("a", "b"))
    assert next_step(line) == Check(("a",))
    line = with_green(line, ("a",))
    assert next_step(line) == Land(("a",))
    line = with_landed(line, ("a",))
    assert next_step(line) == Check(("b",), again=True)  # the tree of both, which was red once
    assert next_step(with_red(line, ("b",))) == Blame("b")
    saved = with_green(line, ("b",))
    assert (next_step(saved), saved.flaky) == (Land(("b",)), (("b",),))


def test_nobody_is_blamed_before_the_target_has_passed() -> None:
    line = with_red(with_red(line_of(0.6, proven=False), ("a",)), ("a",))
    assert next_step(line) == Check(())
    assert next_step(with_green(line, ())) == Blame("a")
    line = with_red(line, ())
    assert next_step(line) == Check((), again=True)
    assert next_step(with_red(line, ())) == Stuck()


def test_what_would_overtake_an_older_one_a_third_time_is_held() -> None:
    line = line_of(0.6, 0.05, 0.05, 0.05)
    line = with_green(line, ("b", "c"))
    assert next_step(line) == Land(("b", "c"))
    line = with_green(with_landed(line, ("b", "c")), ("d",))
    assert next_step(line) == Check(("a",))
    assert next_step(with_green(line, ("a",))) == Land(("d", "a"))
    blamed = without(with_red(with_red(line, ("a",)), ("a",)), "a")
    assert next_step(blamed) == Land(("d",))


def test_of_two_that_clash_the_older_goes_first() -> None:
    line = with_clash(line_of(0.6, 0.05, 0.05), "b", ["a"])
    assert next_step(line) == Check(("c", "a"))
    line = without(line, "a")
    assert next_step(line) == Check(("b", "c"))


def test_a_persons_commit_has_what_it_touches_forgotten() -> None:
    line = with_red(with_green(line_of(0.05, 0.28, 0.28), ("a",)), ("b", "c"))
    untouched = with_moved_target(line, [])
    assert untouched.ids() == ("a", "b", "c")
    assert untouched.red(("b", "c")) is not None
    assert with_moved_target(line, ["b"]).reds == ()


def test_one_that_is_added_comes_last_and_once() -> None:
    line = with_green(line_of(0.05, 0.05), ("a",))
    again = [Waiting("a", 2, 0.1), Waiting("b", 3, 0.1), Waiting("z", 4, 0.1)]
    assert with_added(line, again).ids() == ("b", "z")


def test_the_second_check_is_the_likelier_next_one() -> None:
    first, second = checks_ahead(line_of(0.05, 0.05, 0.6, 0.6), 2)
    assert (first.content, second.content) == (("a", "b", "c"), ("a", "b"))
    assert [one.content for one in checks_ahead(line_of(0.6, 0.6), 3)] == [("a",), ("b",)]  # no repeat beside

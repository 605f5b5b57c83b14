"""Who of several is most likely right, by whose tests pass on whose code."""

from __future__ import annotations

from agent_farm.landing.contest.ranking import Ranked, Standing, ranked


def places(matrix: dict[str, str], **standings: Standing) -> list[Ranked]:
    """`matrix` by author: who passes its tests, in capitals, and who does not."""
    passed = {(author, id.lower()): id.isupper() for author, ids in matrix.items() for id in ids}
    return ranked([standings.get(id, Standing(id)) for id in "abc"], passed)


def order(matrix: dict[str, str], **standings: Standing) -> str:
    return "".join(place.id for place in places(matrix, **standings))


def test_whoever_passes_the_tests_of_others_and_finds_mistakes_comes_first() -> None:
    assert order({"a": "bC", "b": "AC", "c": "AB"})[-1] == "b"
    assert order({"a": "bc", "b": "AC", "c": "AB"}) == "abc"
    assert order({"a": "bc", "b": "Ac", "c": "Ab"})[0] == "a"


def test_tests_that_ask_for_a_mistake_do_not_outvote_two_that_agree() -> None:
    assert order({"a": "Bc", "b": "Ac", "c": "ab"})[-1] == "c"
    found = places({"a": "Bc", "b": "AC", "c": "ab"})
    assert found[-1].id == "c"
    assert found[-1].reasons == (
        "fails the new tests of a (1 of 2)",
        "its own new tests fail on the code of b, a",
    )


def test_a_majority_alone_does_not_win() -> None:
    """Two with the same mistake pass each other's tests; what the third one asks they both fail."""
    assert order({"a": "bc", "b": "AC", "c": "AB"})[0] == "a"


def test_where_tests_leave_it_open_flags_then_size_then_cost_decide() -> None:
    small, flagged = Standing("b", lines=1), Standing("c", flags=("test-skipped",))
    assert order({}, b=small, a=Standing("a", lines=2), c=flagged) == "bac"
    assert order({}, a=Standing("a", cost=2.0), b=Standing("b", cost=1.0), c=Standing("c", cost=3.0)) == "bac"
    assert places({}, c=flagged)[2].reasons[-1] == "flags: test-skipped"


def test_what_is_not_proven_has_no_chance_and_is_last() -> None:
    found = places({"b": "C", "c": "b"}, a=Standing("a", against="it has committed nothing"))
    assert [place.id for place in found] == ["c", "b", "a"]
    assert (found[2].chance, found[2].rank, found[2].reasons) == (
        None, 3, ("not proven: it has committed nothing",)
    )  # fmt: skip

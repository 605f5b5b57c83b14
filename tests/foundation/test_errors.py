"""The tree of errors: each has a code, an exit code, and what a person needs to go on."""

from __future__ import annotations

import inspect

import pytest

from agent_farm import errors
from agent_farm.errors import AgentFarmError, nearest

EXIT_CODES = {
    "AgentFarmError": 1,
    "UsageError": 2,
    "NotFound": 1,
    "DamagedFile": 1,
    "LockTaken": 1,
    "ConsentNeeded": 1,
    "ToolMissing": 1,
    "WorkWouldBeLost": 4,
    "NotDelivered": 5,
    "TimedOut": 124,
}
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, AgentFarmError)
}


@pytest.mark.parametrize(("name", "code"), EXIT_CODES.items())
def test_exit_codes_are_the_documented_ones(name: str, code: int) -> None:
    assert KINDS[name].exit_code == code


def test_every_kind_has_a_code_of_its_own_and_is_in_the_tree_of_the_docstring() -> None:
    codes = [kind.code for kind in KINDS.values()]
    assert len(set(codes)) == len(codes)
    for name in KINDS:
        assert name in str(errors.__doc__)


def test_it_keeps_its_parts() -> None:
    error = AgentFarmError("what", why="why", hint="af hint", evidence=iter(["one", "two"]))
    assert (error.what, error.why, error.hint, error.evidence) == ("what", "why", "af hint", ("one", "two"))
    assert str(error) == "what"


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("clenup", ["cleanup", "experiment"], "cleanup"),
        ("xyzzy", ["cleanup"], None),
        ("x", [], None),
        ("", ["cleanup"], None),
    ],
)
def test_the_nearest_word(word: str, known: list[str], found: str | None) -> None:
    assert nearest(word, known) == found

"""The tree of errors: each has a code, an exit code, and what a person needs to go on."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import agent_farm
from agent_farm import errors
from agent_farm.errors import CODES_OF_ROOMS, AgentFarmError, error_of, nearest

EXIT_CODES = {
    "AgentFarmError": 1,
    "UsageError": 2,
    "NotFound": 1,
    "DamagedFile": 1,
    "LockTaken": 1,
    "ConsentNeeded": 1,
    "ToolMissing": 1,
    "WorkWouldBeLost": 4,
    "OtherWork": 4,
    "NoRoom": 1,
    "Unreachable": 1,
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
    assert {kind.code: kind for kind in KINDS.values()} == errors.KINDS


def constants(of: ast.ClassDef) -> dict[str, object]:
    return {
        target.id: part.value.value
        for part in of.body
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant)
        for target in part.targets
        if isinstance(target, ast.Name)
    }


def test_errors_of_rooms_end_with_1_and_their_codes_are_listed() -> None:
    """Told of by its code alone, an error ends as it did where it was raised, whatever was imported."""
    files = [file for file in Path(agent_farm.__file__).parent.rglob("*.py") if file.name != "errors.py"]
    classes = [
        one
        for file in files
        for one in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(one, ast.ClassDef)
    ]
    names, before = {*KINDS}, 0
    while len(names) > before:
        before = len(names)
        names |= {
            one.name
            for one in classes
            for base in one.bases
            if isinstance(base, ast.Name) and base.id in names
        }
    own = [constants(one) for one in classes if one.name in names]
    assert {str(one["code"]) for one in own if "code" in one} == CODES_OF_ROOMS
    assert not [one for one in own if "exit_code" in one]
    assert not CODES_OF_ROOMS & errors.KINDS.keys()


def test_an_error_that_was_told_of_is_of_its_class() -> None:
    for kind in KINDS.values():
        found = error_of(kind.code, "what", why="why", hint="af hint", evidence=["one"])
        assert (type(found), found.code, found.exit_code) == (kind, kind.code, kind.exit_code)
        assert (found.why, found.hint, found.evidence) == ("why", "af hint", ("one",))
    found = error_of("login", "what", why=None, hint=None, evidence=())
    assert (type(found), found.code, found.exit_code) == (AgentFarmError, "login", 1)


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

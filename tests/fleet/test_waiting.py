"""`af wait` over builders of several machines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_farm.errors import TimedOut
from agent_farm.farm.farm import open_farm
from agent_farm.operations.operation import Context
from agent_farm.operations.wait import Wait, wait
from tests.conftest import Af
from tests.fleet.machines import Machines, Node
from tests.fleet.test_fleet import ok

pytestmark = pytest.mark.slow
BUSY = "[[sleep:600]]"


def on(af: Af, host: str, task: str) -> str:
    return ok(af, "spawn", "--runtime", "demo", "--on", host, task).strip()


def told(text: str) -> dict[str, str]:
    return {words[0]: words[1].rstrip(":") for line in text.splitlines() if (words := line.split())}


def test_any_is_the_first_one_wherever_it_is(af: Af, big: Node, machines: Machines, repo: Path) -> None:
    other = machines("other")
    ok(af, "fleet", "add", "ssh://other")
    busy = [on(af, host, BUSY) for host in ("local", "big")]
    quick = on(af, "other", "Fix the login")
    found = told(ok(af, "wait", "--any", *busy, quick, "--timeout", "5m"))
    assert set(found) == {*busy, quick}
    assert found[quick] == "idle"
    assert not {found[id] for id in busy} & {"idle", "exited"}

    late = af("wait", "--any", *busy, "--timeout", "3s")
    assert late.returncode == 124, late.stderr
    assert all(id in late.stderr for id in busy), late.stderr
    here = on(af, "local", "Fix the logout")
    other.stop()
    done = af("wait", "--any", busy[1], quick, here, "--timeout", "300")
    assert done.returncode == 0, done.stderr
    assert told(done.stdout)[here] == "idle"
    alone = af("wait", "--any", busy[0], quick, "--timeout", "1s")
    assert alone.returncode == 124
    assert "Waiting for the others" in alone.stderr


def test_a_program_waits_for_one_elsewhere(af: Af, big: Node, repo: Path) -> None:
    """It is asked again and again, and told each time that it is not there yet."""
    busy = on(af, "big", BUSY)
    context = Context(open_farm(repo), environ=os.environ)
    with pytest.raises(TimedOut):
        wait.answer_to(context, Wait(ids=(busy,), timeout=0))

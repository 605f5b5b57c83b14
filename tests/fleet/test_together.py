"""What several threads ask one machine goes there as one call, and each hears of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.fleet.together import Together
from agent_farm.operations.fleet.server_keeping import place_lost
from tests.conftest import Af
from tests.fleet.machines import AF, Node
from tests.fleet.test_fleet import ok, shown
from tests.fleet.test_lost_machines import kill, other, runtimes, wait_for_loss
from tests.gitrepo import git
from tests.waiting import wait_until

__all__ = ["other"]  # a fixture


def test_what_comes_meanwhile_gathers() -> None:
    calls, begun, goes_on = list[tuple[str, list[int]]](), Event(), Event()

    def act(key: str, items: Sequence[int]) -> list[int | AgentFarmError]:
        calls.append((key, list(items)))
        if items == [0]:
            begun.set()
            assert goes_on.wait(60)
        if 7 in items and len(items) == 1:
            raise AgentFarmError("seven alone")
        return [AgentFarmError(f"no {one}") if one == 3 else 10 * one for one in items]

    together = Together[str, int, int](act, 4)
    with ThreadPoolExecutor(12) as threads:
        first = threads.submit(together.ask, "big", 0)
        assert begun.wait(60)
        others = {n: threads.submit(together.ask, "big", n) for n in range(1, 7)}
        wait_until(lambda: len(together._waiting["big"]) == 6, what="all to wait")
        assert together.ask("other", 9) == 90, "another machine waits for nobody"
        goes_on.set()
        assert first.result() == 0
        for n, one in others.items():
            if n == 3:
                with pytest.raises(AgentFarmError, match="no 3"):
                    one.result()
            else:
                assert one.result() == 10 * n
    sizes = [len(items) for key, items in calls if key == "big"]
    assert sizes == [1, 4, 2]
    with pytest.raises(AgentFarmError, match="seven alone"):
        together.ask("big", 7)
    assert together.ask("big", 8) == 80


def log_calls(node: Node) -> Path:
    """What it is asked from now on, a line for each call."""
    log = node.directory / "asked"
    verb = 'grep -o \'"verb":"[a-z_]*"\' {log}.$$ | head -n 1 >>{log}'
    node.program.write_text(
        f'#!/bin/sh\n[ "$*" = "fleet answer" ] || exec {AF} "$@"\necho af-fleet-1\ncat >{log}.$$\n'
        f'{verb.format(log=log)}\nexec {AF} "$@" <{log}.$$ | sed 1d\n'
    )
    return log


@pytest.mark.slow
def test_several_are_made_by_few_calls(af: Af, big: Node, repo: Path) -> None:
    """One that the machine refuses is the only one that is not made."""
    ok(af, "spawn", "--on", "big", "--runtime", "demo", "--shell")
    big.run("git", "branch", "builder/b-2")
    log = log_calls(big)
    done = af("spawn", "--on", "big", "--runtime", "demo", "--name", "b", "-n", "7", "Fix it")
    assert done.returncode == 2
    assert "There is a branch builder/b-2" in done.stderr
    assert done.stdout.split() == [f"b-{n}" for n in (1, 3, 4, 5, 6, 7)]
    assert git(repo, "branch", "--list", "builder/b-2") == ""
    asked = log.read_text().split()
    assert asked.count('"verb":"several"') in (1, 2, 3)
    assert len(asked) < 6, asked


@pytest.mark.slow
def test_lost_ones_go_together(af: Af, big: Node, other: Node, repo: Path) -> None:
    done = ok(af, "spawn", "--on", "big", "--runtime", "demo", "--shell", "-n", "5").split()
    ok(af, "wait", *done, "--timeout", "120")
    ok(af, "fleet", "checkpoint")
    kill(big)
    wait_for_loss(af, done[0])
    ok(af, "config", "set", "fleet.restart", "auto")
    log = log_calls(other)
    place_lost(repo, {"PATH": "/usr/bin"})
    asked = log.read_text().split()
    assert '"verb":"several"' in asked
    assert len(asked) < 5, asked
    for id in done:
        assert shown(af, id)["host"] == "other"
        assert len(runtimes(id)) == 1

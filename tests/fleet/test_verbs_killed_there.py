"""Commands about a builder on another machine, killed at each step; of spawn, prune and restore see
`test_killed_there.py`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import af_in, private_home
from tests.farm import shims
from tests.farm.killing import Kill, kill_af
from tests.farm.working import LANDS, Working
from tests.fleet.machines import SSH, SSHD, machines_for
from tests.fleet.there import Answers, There, kill_answer, kill_ssh, spawn_there
from tests.forking import Forks
from tests.gitrepo import make_repo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, short: Path) -> Iterator[Path]:
    """One home and one machine for all tests of this module."""
    with private_home(tmp_path_factory.mktemp("walks"), short) as private:
        yield private


@pytest.fixture(scope="module")
def there(home: Path, short: Path, forks: Forks) -> Iterator[There]:
    if SSHD is None or SSH is None:
        pytest.skip("there is no sshd here: apt-get install openssh-server")
    repo = make_repo(home.parent / "repo")
    af = af_in(repo, forks)
    with machines_for(home, home.parent, short) as machines:
        big = machines("big")
        added = af("fleet", "add", "ssh://big")
        assert added.returncode == 0, added.stderr
        yield There(af, repo, big)


@pytest.fixture
def working(there: There) -> Iterator[Working]:
    """What is left after the walk is what there should be."""
    made = Working.at(there, spawn_there(there))
    yield made
    there.heal("after the walk")
    there.clear(made.builder.id)


WAYS = ("home", "ssh", "ssh afterwards", "itself")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def kill(there: There, way: str, verb: str, directory: Path) -> Kill:
    if way == "home":
        return kill_af(there.repo)
    if way == "itself":
        return kill_answer(there.af, there.node, verb)
    action = shims.ENDS_ITSELF_AFTERWARDS if way == "ssh afterwards" else shims.ENDS_ITSELF
    return kill_ssh(there.af, directory, action)


def test_send(working: Working, there: There, way: str, tmp_path: Path) -> None:
    for what, _ in working.send_at_each_step(kill(there, way, "send", tmp_path)):
        if way == "itself":
            assert "may have been typed" in what


def test_stop(working: Working, there: There, way: str, tmp_path: Path) -> None:
    assert list(working.stop_at_each_step(kill(there, way, "stop", tmp_path)))


def test_resume(working: Working, there: There, way: str, tmp_path: Path) -> None:
    assert list(working.resume_at_each_step(kill(there, way, "resume", tmp_path)))


def test_recover(working: Working, there: There, way: str, tmp_path: Path) -> None:
    assert list(working.recover_at_each_step(kill(there, way, "recover", tmp_path)))


@pytest.mark.parametrize("verb", ["wait", "diff"])
def test_reading(working: Working, there: There, way: str, verb: str, tmp_path: Path) -> None:
    for what in working.read_at_each_step(kill(there, way, verb, tmp_path), verb, working.builder.id):
        assert "has changed nothing" not in what  # which nobody knows: none of its commits has come home


def test_sync(working: Working, there: There, way: str, tmp_path: Path) -> None:
    assert list(working.sync_at_each_step(kill(there, way, "sync", tmp_path)))


def test_merge(working: Working, there: There, way: str, tmp_path: Path) -> None:
    verb = "status"  # what it asks of the machine
    assert list(working.merge_at_each_step(kill(there, way, verb, tmp_path)))


def test_merge_and_prune(working: Working, there: There, way: str, tmp_path: Path) -> None:
    """From its landing on: what comes before is the same without --prune."""
    killing = kill(there, way, "remove_decided", tmp_path)
    first = LANDS if way == "home" else 1
    found = list(working.merge_at_each_step(killing, "--prune", first=first))
    assert {done for _, done in found} == {True, False} or way != "home"


def test_a_wait_ends_there_when_home_is_killed(working: Working, there: There) -> None:
    words = [sys.executable, "-m", "agent_farm", "wait", working.builder.id, "--for", "exited"]
    answers = Answers.of(there.node, "wait")
    with subprocess.Popen(words, cwd=there.repo, stdout=subprocess.DEVNULL) as waiting:
        wait_until(answers.was_asked, what="the call on the machine")
        there.node.is_sound()
        waiting.kill()
    wait_until(lambda: not answers.is_running(), what="its end there")

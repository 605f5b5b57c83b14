"""Commands that take long show how far they are: in place on a terminal, in lines elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.farm import locks
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.launch import Launch
from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.farm.test_deletion import make_kept
from tests.gitrepo import commit_files, git, write_files
from tests.runtimes.ptys import on_pty
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]
Show = Callable[..., str]
PACE = r"[\d,]+(/s| s each), \d+ s left"
# Lines come as often as the line in place is drawn, and with `AT_ONCE` from the first step on.
PROGRAM = """
import sys
from agent_farm import pace
from agent_farm.cli import progress
from agent_farm.cli.main import main
from agent_farm.pane import carried
progress._LINE_SECONDS = progress._REDRAW_SECONDS
if sys.argv[1] == "at once":
    pace._LONG_SECONDS = carried._LONG_SECONDS = 1e-6
    progress._LINE_SECONDS = progress._REDRAW_SECONDS = 0.0
main(sys.argv[2:])
"""


def on_a_terminal(repo: Path, *words: str, at_once: bool = False) -> str:
    launch = Launch(_argv(words, at_once=at_once), repo, dict(os.environ))
    with on_pty(launch) as terminal:
        assert terminal.end() == 0, terminal.text
        return terminal.text


def elsewhere(repo: Path, *words: str, at_once: bool = False) -> str:
    done = subprocess.run(
        _argv(words, at_once=at_once), cwd=repo, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\r" not in done.stderr
    return done.stderr


def _argv(words: tuple[str, ...], *, at_once: bool) -> tuple[str, ...]:
    return (sys.executable, "-c", PROGRAM, "at once" if at_once else "", *words)


def shows(text: str, step: str) -> bool:
    """As a whole line: one that is drawn over, or one that ends."""
    return bool(re.search(rf"(\r\x1b\[K|^){step}, {PACE}(\r|\n)", text, re.MULTILINE))


@pytest.fixture(params=[on_a_terminal, elsewhere], ids=["terminal", "elsewhere"])
def show(request: pytest.FixtureRequest) -> Show:
    found: Show = request.param
    return found


@pytest.fixture
def cold(repo: Path) -> Path:
    """A checkout of which takes 1.5 s, as git's filter of large files would."""
    names = [f"file-{number}.slow" for number in range(30)]
    commit_files(repo, {".gitattributes": "*.slow filter=slow\n", **dict.fromkeys(names, "x\n")})
    git(repo, "config", "filter.slow.smudge", "sleep 0.05; cat")
    return repo


def test_the_checkout_of_a_large_repository(cold: Path, show: Show) -> None:
    text = show(cold, "spawn", "--shell", "--runtime", "demo")
    assert shows(text, r"Updating files: [12]\d of 32"), text


def test_several_builders(cold: Path, show: Show) -> None:
    """While the first are checked out, their share counts."""
    text = show(cold, "spawn", "--shell", "--runtime", "demo", "-n", "5")
    assert shows(text, "Spawning: [1-4] of 5"), text
    assert "Updating" not in text


def test_filling_the_pool(cold: Path, af: Af, show: Show) -> None:
    assert af("config", "set", "--user", "pool.size", "1").returncode == 0
    text = show(cold, "pool", "fill")
    assert shows(text, r"Updating files: [12]\d of 32"), text


def test_bringing_the_pool_to_another_base(cold: Path, af: Af, show: Show) -> None:
    assert af("config", "set", "--user", "pool.size", "1").returncode == 0
    assert af("config", "set", "--user", "spawn.base", "main~").returncode == 0
    assert af("pool", "fill").stdout == "1 ready\n"
    assert af("config", "unset", "--user", "spawn.base").returncode == 0
    text = show(cold, "spawn", "--shell", "--runtime", "demo")
    assert shows(text, r"Updating files: [12]\d of 31"), text


def test_output_that_is_carried(repo: Path, af: Af, show: Show) -> None:
    commit_files(repo, {".gitignore": "out/\n"})
    write_files(repo, {f"out/{number % 7}/{number}": "x" for number in range(500)})
    for name, value in (("worktree.carry", "out"), ("pool.size", "1")):
        assert af("config", "set", "--user", name, value).returncode == 0
    text = show(repo, "pool", "fill", at_once=True)
    assert shows(text, "Carrying output: [1-4]00 of 508"), text


@pytest.mark.slow
def test_output_that_is_carried_in_the_pane(repo: Path, af: Af, spawn: Spawn) -> None:
    commit_files(repo, {".gitignore": "out/\n"})
    write_files(repo, {f"out/{number % 97}/{number}": "" for number in range(30_000)})
    assert af("config", "set", "--user", "worktree.carry", "out").returncode == 0
    builder = spawn("--shell")
    line = r"\[agent-farm\] Carrying output: \d+,\d00 of 30,098, [\d,]+/s, \d+ s left\n"
    wait_until(lambda: re.search(line, af("capture", builder.id).stdout), what="how far it is")


def test_emptying_the_trash(repo: Path, spawn: Spawn, af: Af, show: Show) -> None:
    assert af("prune", spawn("--shell").stop().id).returncode == 0
    make_kept(open_farm(repo), 5)
    text = show(repo, "prune", "--expire", "0", at_once=True)
    assert shows(text, "Taking out of the trash: [1-5] of 6"), text


def test_comparing(repo: Path, spawn: Spawn, af: Af) -> None:
    assert af("config", "set", "check.command", "true").returncode == 0
    ids = [spawn(f"Task {number}").id for number in range(3)]
    text = elsewhere(repo, "compare", "--yes", *ids, at_once=True)
    assert shows(text, "Checking: 2 of 3"), text


def test_a_hundred_at_a_time_count_as_all(repo: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even those that a step leaves out."""
    ids = [spawn("--shell").id for _ in range(3)]
    steps = list[tuple[str, float, int]]()
    farm = replace(open_farm(repo), step=lambda *said: steps.append(said))
    monkeypatch.setattr(locks, "_AT_ONCE", 2)

    def act(farm: Farm, records: Mapping[str, BuilderRecord]) -> dict[str, str]:
        farm.step("Looking", 0, len(records))
        farm.step("Ending", 0, 1)
        return {id: id for id in records}

    assert [id for id, _ in locks.each_held(farm, ids, act)] == ids
    assert steps == [("Looking", 0, 3), ("Ending", 1, 3), ("Looking", 2, 3), ("Ending", 2, 3)]

"""Lists keep to the width of the terminal: no line is broken by it, and the columns stay below each other."""

from __future__ import annotations

import pytest

from agent_farm.cli import costs, schedule, sessions
from agent_farm.cli.cells import cells
from agent_farm.cli.columns import table
from agent_farm.operations.costs import Costs, OfBuilder, Sum
from agent_farm.operations.schedule import FoundSchedules, ScheduleShown
from agent_farm.operations.sessions import FoundSessions
from agent_farm.sessions.session import Session
from tests.conftest import Af

LONG = "Write about the redirect, 日本語も, " * 5


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    assert table([("a", "bb", "c"), ("aaa", "b", "cc")], 80) == ["a    bb  c", "aaa  b   cc"]
    assert table([], 80) == []


@pytest.mark.parametrize("width", range(10, 90, 7))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = [("task-0001-aaaa", "demo", "17", LONG), ("shell-1733250000-b4c1", "claude-code", "1", "x")]
    found = table(rows, width, give_way=(2, 1))
    assert max(map(cells, found)) <= width


def test_columns_give_way_to_the_last_one_in_their_order() -> None:
    rows = [("task-0001", "demo", "17", LONG)]
    assert table(rows, 60, give_way=(2, 1))[0].startswith("task-0001  demo  17  Write")
    assert table(rows, 50, give_way=(2, 1))[0].startswith("task-0001  demo  Write")
    assert table(rows, 40, give_way=(2, 1))[0].startswith("task-0001  Write")
    assert table([("task-0001", "demo", "17", "short")], 40, give_way=(2, 1)) == [
        "task-0001  demo  17  short"
    ]


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lists_keep_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    spent = {"input_tokens": 50_013, "output_tokens": 1234, "cached_tokens": 30_000, "cost": 1.25}
    ids = ("shell-1733250000-b4c1", "login-fix")
    made = tuple(OfBuilder(**spent, id=id, title=LONG, runtime="claude-code", landed=True) for id in ids)
    costs._show(Costs(Sum(**spent), 0, None, made, ()))
    found = lines(capsys)
    assert [line.split()[0] for line in found] == ["id", *ids]
    assert max(map(cells, found)) <= width

    ran = Session(id="3f2a9c81", butler="shop", runtime="claude-code", prompt=LONG, created_at=1.0)
    sessions._show_all(FoundSessions((ran, ran)))
    found = lines(capsys)
    assert [line.split()[0] for line in found] == ["3f2a9c81", "3f2a9c81"]
    assert max(map(cells, found)) <= width

    due = ScheduleShown(
        name="nightly",
        cron="0 3 * * *",
        prompt=LONG,
        butler="shop",
        enabled=True,
        origin="store",
        next_due=1.0,
        agreed=True,
    )
    schedule._show_all(FoundSchedules((due,)))
    found = lines(capsys)
    assert [line.split()[0] for line in found] == ["nightly"]
    assert max(map(cells, found)) <= width


@pytest.mark.parametrize("width", ["60", "80"])
def test_what_waits_to_be_reviewed_and_to_start_keeps_to_it(af: Af, width: str) -> None:
    env = {"COLUMNS": width}
    assert af("spawn", "--runtime", "demo", "--name", "first", f"[[write:one.txt]] {LONG}").returncode == 0
    assert af("wait", "first", "--timeout", "300").returncode == 0
    assert af("spawn", "--runtime", "demo", "--after", "first", "--name", "second", LONG).returncode == 0
    for words in (("review", "--list"), ("queue",), ("status",)):
        done = af(*words, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        assert max(map(cells, done.stdout.splitlines())) <= int(width), done.stdout
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("  second"))
    assert "  Write about" in row  # what it is to do, before what it waits for

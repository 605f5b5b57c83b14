"""Builders on another machine on the board, in a real terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.test_attach import AF, Terminal
from tests.conftest import Af
from tests.fleet.machines import Node
from tests.fleet.test_fleet import ok, spawned
from tests.gitrepo import git
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def board(af: Af, big: Node, repo: Path) -> Terminal:
    """A terminal that has the way to the machine, and no board yet."""
    shell = ("env", "-u", "TMUX", "PS1=$ ", "bash", "--norc")
    place = ("-L", "outer", "-f", "/dev/null", "new-session", "-d", "-s", "terminal", "-c", str(repo))
    subprocess.run(["tmux", *place, "-x", "100", "-y", "40", *shell], check=True, timeout=120)
    return Terminal()


def opened(terminal: Terminal) -> Terminal:
    terminal.type(f"unset TMUX; {AF} board; echo ended=$?")
    terminal.shows("q quit")
    return terminal


def test_a_builder_there_is_looked_at_and_acted_on(af: Af, board: Terminal, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    opened(board)
    board.shows("big: Fix the login")
    board.shows("demo>")  # the view of its screen
    board.keys("e")
    board.shows(f"editor: {id} is on big: its files are there")
    board.keys("Enter")
    board.shows("back to the board")
    wait_until(lambda: big.run("tmux", "list-clients") != "", what="a client of tmux there")
    board.keys("C-b", "d")
    board.shows("q quit")
    board.keys("m")
    board.shows(f"Message to {id}")
    subprocess.run(
        ["tmux", "-L", "outer", "send-keys", "-t", "terminal", "-l", "And now the logout"], check=True
    )
    board.keys("Enter")
    board.shows(f"{id} submitted")
    board.shows("Idle (1)")
    board.keys("l")
    board.shows("Enter: land")
    board.keys("Enter")
    board.shows("landed on main")
    assert "demo-" in git(repo, "ls-files")
    (big.farms[0] / ".builders" / id / "left.txt").write_text("not committed\n")
    board.keys("p")
    board.shows("untracked  left.txt")
    board.keys("Escape")
    wait_until(lambda: "left.txt" not in board.screen(), what="the box to close")
    (big.farms[0] / ".builders" / id / "left.txt").unlink()
    board.keys("x")
    board.shows("Enter: stop")
    board.keys("Enter")
    board.shows("Ended (1)")
    board.keys("p")
    board.shows("Finished and landed")
    board.keys("Enter")
    board.shows("No builder")
    board.keys("u")
    board.shows("Bring back")
    board.keys("Enter")
    board.shows("Ended (1)")
    board.keys("q")
    board.shows("ended=0")


def chosen(board: Terminal) -> str:
    return next((line for line in board.screen().splitlines() if line.lstrip().startswith("›")), "")


def test_a_machine_that_hangs_holds_up_neither_the_board_nor_its_end(
    af: Af, board: Terminal, big: Node
) -> None:
    there = spawned(af, "Fix the login")
    ok(af, "wait", there, "--timeout", "120")
    ok(af, "status", "--fresh")
    here = ok(af, "spawn", "--runtime", "demo", "[[say:I am here]]").strip()
    ok(af, "wait", here, "--timeout", "120")
    big.hang()
    opened(board)
    board.shows("ago: Fix the login")
    board.keys("g")
    for key in ("j", "k", "j", "k"):
        board.keys(key)
    rows = board.screen().partition("screen:")[0]
    for key in "gj" if rows.index(there) < rows.index(here) else "g":
        board.keys(key)
    wait_until(lambda: here in chosen(board), what="the cursor on its row")
    board.shows(f"screen: {here}")
    board.shows("I am here")
    board.keys("m")
    board.shows(f"Message to {here}")
    board.keys("Escape")
    wait_until(lambda: "Message to" not in board.screen(), what="the box to close")
    board.keys("q")
    board.shows("ended=0")
    big.go_on()

"""The board in a real terminal: looked at, moved in and acted from, by keys alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest

from tests.cli.test_attach import AF, Terminal, builder, clients, terminal, tmux
from tests.conftest import Af
from tests.gitrepo import git
from tests.landing.test_pull_requests import made
from tests.operations.test_costs import spawned
from tests.waiting import wait_until

__all__ = ["builder", "terminal"]  # fixtures

pytestmark = pytest.mark.slow


def resize(columns: int, rows: int) -> None:
    size = ("-x", str(columns), "-y", str(rows))
    subprocess.run(["tmux", "-L", "outer", "resize-window", "-t", "terminal", *size], check=True)


def opened(terminal: Terminal, command: str = f"{AF} board") -> None:
    terminal.type(f"unset TMUX; {command}; echo ended=$?")
    terminal.shows("q quit")


def lines(terminal: Terminal) -> list[str]:
    return terminal.screen().splitlines()


def test_from_the_question_to_the_landed_work_without_typing_an_id(
    terminal: Terminal, af: Af, repo: Path
) -> None:
    opened(terminal, AF)  # `af` alone is the board
    terminal.shows("No builder")
    terminal.keys("c")
    terminal.shows("Spawn a builder")
    tmux("send-keys", "-t", "terminal", "-l", "[[ask:May I paint it red?]] [[write:red.txt]]", server="outer")
    terminal.keys("C-s")
    terminal.shows("1 needs you")
    terminal.shows("May I paint it red?")
    terminal.keys("a")
    terminal.shows("keys go to it")
    terminal.keys("1")
    terminal.shows("Idle (1)")
    wait_until(lambda: "keys go to it" not in terminal.screen(), what="the box to close by itself")
    terminal.shows("  +1  ")  # its commit is seen a moment after its turn's end
    terminal.keys("l")
    terminal.shows("Enter: land")
    terminal.keys("Enter")
    terminal.shows("landed on main")
    assert "red.txt" in git(repo, "ls-tree", "--name-only", "HEAD")
    terminal.keys("p")
    terminal.shows("Finished and landed")
    terminal.keys("Enter")
    terminal.shows("removed")
    terminal.shows("No builder")
    terminal.keys("u")
    terminal.shows("Bring back")
    terminal.keys("Enter")
    terminal.shows("is back")
    terminal.shows("Ended (1)")
    terminal.keys("q")
    terminal.shows("ended=0")


def test_builders_land_through_the_queue_while_the_board_goes_on(
    terminal: Terminal, af: Af, repo: Path
) -> None:
    go = repo.parent / "go"
    check = f"until test -e {go}; do sleep 0.1; done; ! ls bad* 2>/dev/null"
    (repo / "agent-farm.toml").write_text(f'[check]\ncommand = "{check}"\n')
    good, bad = spawned(af, "[[write:good.txt]]"), spawned(af, "[[write:bad.txt]]")
    opened(terminal)
    terminal.shows(bad)
    terminal.keys("*", "l")
    terminal.shows("Enter: land 2 builders")
    terminal.keys("Enter")
    terminal.shows("Y: agree to this")
    terminal.keys("Y")
    terminal.shows("Landing on main · 2 to go · checking")
    terminal.keys("q")  # it goes on without the board, and is there again with the next one
    terminal.shows("ended=0")
    opened(terminal)
    terminal.shows("Landing on main · 2 to go · checking")
    go.touch()
    terminal.shows(f"The landing is done: 1 landed, 1 came back ({bad})")
    assert "good.txt" in git(repo, "ls-tree", "--name-only", "HEAD")
    assert good in af("land", "--status").stdout


def test_a_landing_that_stopped_is_gone_on_with_or_emptied(terminal: Terminal, af: Af, repo: Path) -> None:
    (repo / "agent-farm.toml").write_text('[check]\ncommand = "test -e repaired"\n')
    spawned(af, "[[write:good.txt]]")
    opened(terminal)
    terminal.shows("  +1  ")
    terminal.keys("l")
    terminal.shows("Enter: land")
    terminal.keys("Enter")
    terminal.shows("test -e repaired")
    terminal.shows("Y: agree to this")
    (repo / "agent-farm.toml").write_text('[check]\ncommand = "test -e mended"\n')
    terminal.keys("Y")
    terminal.shows("test -e mended")  # which had not been shown
    terminal.keys("Y")
    terminal.shows("Landing on main stopped")
    terminal.shows("The check fails on main itself")
    terminal.keys("l")
    terminal.shows("E: empty the queue")
    terminal.keys("E")
    terminal.shows("The landing queue is empty")
    wait_until(lambda: "Landing on main" not in terminal.screen(), what="the line of the landing to go")


def test_one_that_waits_to_start_is_not_called_finished(terminal: Terminal, af: Af, repo: Path) -> None:
    (repo / "agent-farm.toml").write_text("[limits]\nmax_builders = 1\n")
    spawned(af, "Say hello")
    af("spawn", "--runtime", "demo", "Later")
    opened(terminal)
    terminal.shows("Queued (1)")
    terminal.keys("g", "p")  # queued ones come before idle ones
    terminal.shows("Waits to start, and has no work yet")
    assert "Finished and landed" not in terminal.screen()
    terminal.keys("Enter")
    terminal.shows("is no longer waiting")


def test_a_message_that_was_not_delivered_is_not_typed_again(terminal: Terminal, af: Af) -> None:
    id = spawned(af, "[[ask:Which way?]]")
    opened(terminal)
    terminal.shows("Which way?")
    terminal.keys("m")
    terminal.shows("Enter: done")
    tmux("send-keys", "-t", "terminal", "-l", "A long message", server="outer")
    terminal.keys("Enter")
    terminal.shows("held")
    terminal.keys("m")
    terminal.shows(f"Message to {id}")
    terminal.shows("A long message")


def test_what_would_be_lost_is_shown_before_it_is_removed(terminal: Terminal, af: Af) -> None:
    id = spawned(af, "[[write:only-here.txt]]")
    opened(terminal)
    terminal.shows(id)
    terminal.keys("p")
    terminal.shows("This exists nowhere else: 1 commit not landed")
    terminal.keys("Enter")  # is no answer to that
    terminal.keys("Escape")
    terminal.shows("q quit")
    assert af("status", id).returncode == 0
    terminal.keys("p")
    terminal.shows("D: remove anyway")
    terminal.keys("D")
    terminal.shows("No builder")
    assert id in af("restore", "--list").stdout


def test_what_was_not_shown_is_not_discarded(terminal: Terminal, af: Af, repo: Path) -> None:
    """It had landed when the box opened; what it wrote since then is not covered by the answer."""
    landed, other = spawned(af, "[[write:landed.txt]]"), spawned(af, "[[write:only-here.txt]]")
    assert af("merge", landed).returncode == 0
    opened(terminal)
    terminal.shows(other)
    terminal.keys("g", "Space", "Space", "p")
    terminal.shows("This exists nowhere else")
    terminal.shows(f"Finished and landed: {landed}")
    (repo / ".builders" / landed / "new.txt").write_text("new\n")
    terminal.keys("D")
    terminal.shows(f"{other} removed")
    assert af("status", landed).returncode == 0
    assert (repo / ".builders" / landed / "new.txt").exists()


def test_a_task_that_could_not_be_spawned_is_not_typed_again(terminal: Terminal, repo: Path) -> None:
    (repo / "agent-farm.toml").write_text('[worktree]\nsetup = "sh setup.sh"\n')
    opened(terminal)
    terminal.keys("c")
    terminal.shows("Spawn a builder")
    tmux("send-keys", "-t", "terminal", "-l", "A long task", server="outer")
    terminal.keys("C-s")
    terminal.shows("nobody has agreed")
    terminal.shows("Y: agree to this")
    terminal.keys("Escape")
    wait_until(lambda: "Y: agree" not in terminal.screen(), what="the box to close")
    terminal.keys("c")
    terminal.shows("A long task")


@pytest.mark.parametrize(("key", "box"), [("c", "Spawn a builder"), ("m", "Message to")])
def test_what_was_typed_is_there_again_after_esc(
    terminal: Terminal, builder: str, key: str, box: str
) -> None:
    opened(terminal)
    terminal.shows(builder)
    terminal.keys(key)
    terminal.shows(box)
    tmux("send-keys", "-t", "terminal", "-l", "A long text", server="outer")
    terminal.shows("A long text")
    terminal.keys("Escape")
    wait_until(lambda: box not in terminal.screen(), what="the box to close")
    terminal.keys(key)
    terminal.shows("A long text")


def test_messages_views_filter_and_a_key_that_does_nothing(terminal: Terminal, af: Af, builder: str) -> None:
    other = spawned(af, "Write two lines about birds into birds.md")
    opened(terminal)
    terminal.shows(other)
    terminal.keys("/")
    tmux("send-keys", "-t", "terminal", "-l", "birds", server="outer")
    wait_until(lambda: builder not in terminal.screen(), what="a list without the other builder")
    terminal.keys("Enter")
    wait_until(lambda: "\n birds" not in terminal.screen(), what="the line of the filter to close")
    terminal.keys("Tab")
    terminal.shows("+Line 2 about birds")
    terminal.keys("r")
    terminal.shows(f"{other} runs (idle)")
    terminal.keys("m")
    terminal.shows("Enter: done")
    tmux("send-keys", "-t", "terminal", "-l", "[[say:hello from the board]]", server="outer")
    terminal.keys("Enter")
    terminal.shows("submitted")
    terminal.keys("Escape")
    terminal.shows(builder)


def test_attaching_says_the_way_back_and_comes_back(terminal: Terminal, builder: str) -> None:
    opened(terminal)
    terminal.shows(builder)
    terminal.keys("Enter")
    wait_until(lambda: len(clients()) == 1, what="a client of the builder's session")
    terminal.shows("back to the board: C-b d")
    terminal.keys("C-b", "d")
    terminal.shows("q quit")
    assert clients() == []


@pytest.mark.parametrize(
    ("columns", "rows", "setting"), [(60, 16, "NO_COLOR=1 "), (80, 24, ""), (200, 50, "NO_COLOR=1 ")]
)
def test_every_key_is_on_every_screen(
    terminal: Terminal, builder: str, columns: int, rows: int, setting: str
) -> None:
    resize(columns, rows)
    opened(terminal, f"{setting}{AF} board")
    terminal.shows("› idle")
    shown = "\n".join(lines(terminal)[-2 if rows == 16 else -5 :])
    resume = "(r)" if rows == 16 else "(r resume)"
    for word in ("attach", "answer", "message", "land", resume, "? help", "q quit"):
        assert word in shown
    terminal.keys("?")
    terminal.shows("attach to its terminal")


def test_the_review_opens_at_the_builder_under_the_cursor_and_comes_back(terminal: Terminal, af: Af) -> None:
    ids = [spawned(af, f"[[write:{name}.txt]]") for name in ("one", "two")]
    opened(terminal)
    for id in ids:
        terminal.shows("Idle (2)")
        terminal.keys("g" if id == ids[0] else "G", "R")
        terminal.shows(f"/2 · {id} · risk")
        terminal.keys("Escape")
    terminal.shows("c create")
    terminal.keys("g", "Space", "R")  # the marked one alone
    terminal.shows(f"1/1 · {ids[0]} · risk")
    terminal.keys("r")
    terminal.shows("Nothing is new since you read it")
    resize(60, 16)
    terminal.keys("q")
    terminal.shows("m message")
    assert any("›" in line for line in lines(terminal))  # the cursor is in view in the other size, too
    terminal.keys("q")
    terminal.shows("ended=0")


def test_what_became_of_a_pull_request_is_seen_and_a_forge_that_hangs_holds_up_nobody(
    terminal: Terminal, af: Af, repo: Path, tmp_path: Path
) -> None:
    id = spawned(af, "[[write:one.txt]]")
    forge = made("gh", tmp_path, repo, af)
    forge.told(id)
    program, told, pid = forge.place / "bin" / "gh", forge.place / "gh", forge.place / "pid"
    program.rename(told)
    program.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 600\n")
    program.chmod(0o755)
    opened(terminal, f"PATH={program.parent}:$PATH {AF} board")
    terminal.shows("#1 open")
    hung = int(wait_until(lambda: pid.exists() and pid.read_text(), what="the forge to be asked"))
    terminal.keys("q")
    terminal.shows("ended=0")
    wait_until(lambda: not psutil.pid_exists(hung), what="gh to be ended with the board")
    told.rename(program)
    forge.change(state="merged")
    opened(terminal, f"clear; PATH={program.parent}:$PATH {AF} board")
    terminal.shows("#1 merged")


def test_several_that_are_marked_are_stopped_together(terminal: Terminal, af: Af, builder: str) -> None:
    other = spawned(af, "Say hello")
    opened(terminal)
    terminal.shows(other)
    terminal.keys("g", "Space", "Space", "x")
    terminal.shows("Stop 2 builders")
    terminal.keys("Enter")
    terminal.shows("Ended (2)")
    assert "2 stopped" in af("status").stdout


def test_no_terminal_no_board(af: Af) -> None:
    done = af("board")
    assert done.returncode == 1
    assert "hint: af status" in done.stderr

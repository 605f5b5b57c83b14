"""The review in a real terminal: read, said, decided and undone by keys alone, in every size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.board.test_board import lines, resize, spawned
from tests.cli.test_attach import AF, Terminal, builder, terminal, tmux
from tests.conftest import Af
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

__all__ = ["builder", "terminal"]  # fixtures

pytestmark = pytest.mark.slow

BODY = "".join(f"def number_{line}(): return {line}\n" for line in range(1, 31))


def opened(terminal: Terminal, *, environment: str = "") -> None:
    terminal.type(f"unset TMUX; {environment}{AF} review; echo ended=$?")
    terminal.shows("q quit")


def worked(af: Af, repo: Path, files: dict[str, str]) -> str:
    id = spawned(af, "[[write:first.txt]]")
    commit_files(repo / ".builders" / id, files, "work")
    return id


def kept(af: Af, id: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(af("review", id, "--json").stdout)["items"][0]
    return found


def typed(text: str) -> None:
    tmux("send-keys", "-t", "terminal", "-l", text, server="outer")


def test_from_the_first_hunk_to_the_landed_work(terminal: Terminal, af: Af, repo: Path) -> None:
    assert af("config", "set", "check.command", "true").returncode == 0
    git(repo, "add", "agent-farm.toml")
    git(repo, "commit", "-q", "-m", "checks")
    risky, small = worked(af, repo, {"code.py": BODY}), spawned(af, "[[write:small.txt]]")
    opened(terminal)
    terminal.shows("1/2")
    terminal.shows(risky)
    terminal.shows("no check has run on it")
    terminal.shows("def number_1(): return 1")
    terminal.keys("]", "j", "v", "j", "c")
    terminal.shows("Comment on code.py:1-2")
    typed("Why a function each?")
    terminal.keys("Enter")
    terminal.shows("“Why a function each?” [draft]")
    terminal.keys("s")
    terminal.shows("> def number_1(): return 1")
    terminal.keys("Enter")
    terminal.shows("submitted")
    terminal.shows("[open]")
    terminal.keys("f")
    wait_until(lambda: kept(af, risky)["unread"] == 1, what="the file to be read")
    terminal.keys("u")
    terminal.shows("undone: read: code.py")
    assert kept(af, risky)["unread"] == 31
    terminal.keys("a")
    terminal.shows("31 changed lines are unread")
    terminal.keys("Enter")
    terminal.shows(f"{risky} is in the landing queue")
    terminal.shows(f"2/2 · {small}")
    wait_until(lambda: "code.py" in git(repo, "ls-tree", "--name-only", "main"), what="it to land")
    terminal.keys("x")
    terminal.shows("its builder is told")
    typed("Not needed any more")
    terminal.keys("Enter")
    terminal.shows(f"{small} is rejected; its message was submitted")
    terminal.keys("q")
    terminal.shows("ended=0")


@pytest.mark.parametrize(("columns", "rows"), [(60, 16), (80, 24), (200, 50)])
@pytest.mark.parametrize("environment", ["", "NO_COLOR=1 "], ids=["colour", "plain"])
def test_all_of_it_fits(
    terminal: Terminal, af: Af, repo: Path, columns: int, rows: int, environment: str
) -> None:
    worked(af, repo, {"code.py": BODY, "first.txt": "another line\n"})
    resize(columns, rows)
    opened(terminal, environment=environment)
    terminal.shows("1/1")
    terminal.keys("]")
    terminal.shows("+ def number_1(): return 1")
    shown = lines(terminal)
    assert all(len(line) <= columns for line in shown)
    assert "? help" in terminal.screen()
    assert any("31 unread" in line for line in shown[:1])
    if columns == 200:
        assert any("│" in line and "›" in line for line in shown)  # the list of results


def test_only_what_is_new(terminal: Terminal, af: Af, repo: Path) -> None:
    id = worked(af, repo, {"code.py": BODY})
    assert af("review", id, "--read").returncode == 0
    tree = repo / ".builders" / id
    commit_files(tree, {"code.py": BODY.replace("return 7\n", "return seven\n")}, "second")
    opened(terminal)
    terminal.shows("out again: def number_7(): return 7")
    terminal.shows("as before")
    assert "number_20" not in terminal.screen()
    terminal.keys("w")
    terminal.shows("all of it")
    terminal.shows("number_20")


def test_a_result_that_went_meanwhile_is_said_and_the_review_goes_on(
    terminal: Terminal, af: Af, repo: Path
) -> None:
    one, other = worked(af, repo, {"one.py": 3 * BODY}), worked(af, repo, {"two.py": BODY})
    opened(terminal)
    terminal.shows(f"1/2 · {one}")
    third = worked(af, repo, {"three.py": BODY + BODY})
    terminal.keys("r")  # the queue is counted again, and has the third now
    terminal.shows(f"2/3 · {other}")
    assert af("prune", third, "--discard-commits", "--stop").returncode == 0
    terminal.keys("N", "n", "n")
    terminal.shows(f"{third}")
    terminal.keys("?")
    terminal.shows("mark the hunk as read")
    terminal.keys("Escape")
    terminal.shows(f"2/3 · {other}")


def test_a_line_of_the_list_is_one_row_and_a_comment_on_all_leaves_the_cursor_at_its_line(
    terminal: Terminal, af: Af, repo: Path
) -> None:
    spawned(
        af, "[[write:first.txt]] Explain in the guide for merchants how products are uploaded and paid for"
    )
    resize(80, 24)
    opened(terminal)
    terminal.shows("1/1")
    terminal.keys("l")
    terminal.shows("Enter: this one")
    begin = next(at for at, line in enumerate(lines(terminal)) if "Results, riskiest first" in line)
    assert "…" in lines(terminal)[begin + 1]
    assert "Enter: this one" in lines(terminal)[begin + 2]
    terminal.keys("Escape")
    wait_until(lambda: "Enter: this one" not in terminal.screen(), what="the list to close")
    terminal.keys("j", "j", "j", "c")  # the heading of its file: a comment on all of it
    terminal.shows("Comment on all of it")
    typed("Why?")
    terminal.keys("Enter")
    terminal.shows("“Why?” [draft]")
    terminal.shows("›first.txt")


def test_nothing_to_review(terminal: Terminal, repo: Path) -> None:
    opened(terminal)
    terminal.shows("There is nothing to review")
    terminal.keys("a")
    terminal.shows("approve: there is no result")
    terminal.keys("q")
    terminal.shows("ended=0")

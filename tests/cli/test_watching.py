"""What stays on the screen: `status --watch`, `logs -f`, the pager, and columns of wide characters."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.cli.cells import cells, cut, pad
from tests.cli.test_attach import AF, Terminal, builder, terminal
from tests.conftest import Af
from tests.gitrepo import write_files
from tests.waiting import wait_until

__all__ = ["builder", "terminal"]  # fixtures


@pytest.mark.parametrize(
    ("text", "width"), [("plain", 5), ("日本語", 6), ("🎉", 2), ("e\u0301", 1), ("", 0), ("é", 1)]
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width
    assert cells(pad(text, 8)) == 8


@pytest.mark.parametrize("text", ["日本語日本語", "a🎉b🎉c🎉", "plain text", "e\u0301" * 9])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_a_cut_text_never_takes_more_room(text: str, size: int) -> None:
    shown = cut(text, size)
    assert cells(shown) <= size
    assert shown.endswith("…")


def test_wide_tasks_fit_their_terminal(af: Af) -> None:
    for text in ("日本語" * 60, "🎉 " * 80, "plain " * 40, "tab\tand\nnewline " * 20):
        assert af("spawn", text, "--runtime", "demo").returncode == 0
    for columns in ("80", "200"):
        lines = af("status", env={"COLUMNS": columns}).stdout.splitlines()
        assert max(map(cells, lines)) <= int(columns)
        assert sum(line.endswith("…") for line in lines) == 4
    subprocess.run(["tmux", "kill-server"], check=True)
    wait_until(lambda: af("status").stdout.count(" lost ") == 4, what="the loss to be seen")
    lost = af("recover", "--dry-run", env={"COLUMNS": "80"}).stderr.splitlines()
    ids = [line.split()[0] for line in lost]
    assert af("prune", *ids, "--discard-changes", "--discard-commits").returncode == 0
    removed = af("restore", "--list", env={"COLUMNS": "80"}).stdout.splitlines()
    assert [line.endswith("…") and cells(line) <= 80 for line in lost + removed] == [True] * 8


def test_watch_fits_its_window_and_gives_the_screen_back(terminal: Terminal, af: Af) -> None:
    for _ in range(6):
        assert af("spawn", "--shell", "--runtime", "demo").returncode == 0
    subprocess.run(["tmux", "-L", "outer", "resize-window", "-t", "terminal", "-y", "6"], check=True)
    terminal.type("echo before")
    terminal.shows("before")
    terminal.type(f"{AF} status --watch")
    terminal.shows("6 builders:")
    assert "Shells (6)" in terminal.screen()
    assert "more lines" in terminal.screen()
    terminal.keys("C-c")
    terminal.shows("before")
    assert "builders:" not in terminal.screen()


def test_follow_ends_when_the_builder_is_stopped(af: Af, builder: str, repo: Path) -> None:
    follow = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "logs", "-f", builder],
        cwd=repo,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follow.stdout is not None
    assert "preparing" in follow.stdout.readline()
    assert af("stop", builder).returncode == 0
    assert follow.wait(timeout=120) == 0
    follow.stdout.close()


def test_ctrl_c_in_the_pager_is_the_pagers_to_handle(
    terminal: Terminal, af: Af, builder: str, repo: Path
) -> None:
    write_files(repo / ".builders" / builder, {"long.txt": "line\n" * 200})
    terminal.type(f"PAGER=less {AF} diff {shlex.quote(builder)}; echo ended=$?")
    terminal.shows("+line")
    terminal.keys("C-c")

    def ended() -> bool:
        if terminal.screen().rstrip().endswith(":"):  # `less` is still there, and drops what comes too soon
            terminal.keys("q")
        return "ended=0" in terminal.screen()

    wait_until(ended, what="the end of less")

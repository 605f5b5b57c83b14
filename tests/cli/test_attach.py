"""Attaching: from a plain terminal, inside the builders' tmux, inside another tmux, and from no terminal.

A pane of a second tmux server is the terminal.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.traces import traces
from tests.waiting import wait_until

AF = shlex.join([sys.executable, "-m", "agent_farm"])


def tmux(*words: str, server: str | None = None) -> str:
    where = ["-L", server] if server else []
    return subprocess.run(
        ["tmux", *where, *words], capture_output=True, text=True, check=False, timeout=120
    ).stdout.strip()


@dataclass(frozen=True)
class Terminal:
    """One that a person sits at: a shell in a pane of the server `outer`."""

    def type(self, command: str) -> None:
        tmux("send-keys", "-t", "terminal", "-l", command, server="outer")
        tmux("send-keys", "-t", "terminal", "Enter", server="outer")

    def keys(self, *names: str) -> None:
        tmux("send-keys", "-t", "terminal", *names, server="outer")

    def screen(self) -> str:
        return tmux("capture-pane", "-p", "-t", "terminal", server="outer")

    def shows(self, text: str) -> None:
        wait_until(
            lambda: text in self.screen(), what=f"{text!r} on the terminal, which shows {self.screen()}"
        )


@pytest.fixture
def terminal(repo: Path) -> Terminal:
    size = ("-x", "100", "-y", "30")
    shell = ("env", "PS1=$ ", "bash", "--norc")
    place = ("-L", "outer", "-f", "/dev/null", "new-session", "-d", "-s", "terminal", "-c", str(repo))
    subprocess.run(["tmux", *place, *size, *shell], check=True, timeout=120)
    found = Terminal()
    found.shows("$")
    return found


@pytest.fixture
def builder(af: Af) -> str:
    done = af("spawn", "--shell", "--runtime", "demo", "--json")
    record = json.loads(done.stdout)["builder"]
    assert af("wait", record["id"], "--timeout", "300").returncode == 0
    return str(record["id"])


def clients() -> list[str]:
    """The sessions of the builders' server that somebody looks at."""
    return tmux("list-clients", "-F", "#{session_name} #{client_readonly}").splitlines()


def shows_builder(id: str, readonly: int = 0) -> Callable[[], bool]:
    return lambda: len(clients()) == 1 and clients()[0].endswith(f"-{id} {readonly}")


def test_from_a_plain_terminal(terminal: Terminal, builder: str) -> None:
    terminal.type(f"unset TMUX; {AF} attach {builder}; echo ended=$?")
    wait_until(shows_builder(builder), what="a client of the builder's session")
    terminal.shows("demo>")
    terminal.keys("C-b", "d")
    terminal.shows("ended=0")
    assert clients() == []


@pytest.mark.parametrize(("term", "why"), [("nonsense", "no description"), ("dumb", "neither clear")])
def test_a_terminal_on_which_tmux_cannot_draw(terminal: Terminal, builder: str, term: str, why: str) -> None:
    terminal.type(f"unset TMUX; TERM={term} {AF} attach {builder}; echo ended=$?")
    terminal.shows("ended=2")
    shown = " ".join(terminal.screen().split())
    assert f"TERM is '{term}'" in shown
    assert why in shown
    assert f"TERM=xterm-256color af attach {builder}" in shown


def test_without_an_id_the_only_builder_is_meant(terminal: Terminal, builder: str) -> None:
    terminal.type(f"unset TMUX; {AF} attach")
    wait_until(shows_builder(builder), what="a client of the builder's session")


def test_without_an_id_one_is_chosen_and_those_that_wait_come_first(
    terminal: Terminal, builder: str, af: Af
) -> None:
    waiting = json.loads(af("spawn", "--runtime", "demo", "[[ask:May I?]]", "--json").stdout)["builder"]["id"]
    af("wait", waiting, "--timeout", "300")
    terminal.type(f"unset TMUX; {AF} attach; echo ended=$?")
    terminal.shows("Attach to")
    rows = [line.split()[:3] for line in terminal.screen().splitlines()]
    assert ["1", waiting, "waiting"] in rows
    assert ["2", builder, "idle"] in rows
    terminal.type("9")
    terminal.shows("Type a number from 1 to 2, or q")
    terminal.type("2")
    wait_until(shows_builder(builder), what="a client of the builder's session")
    terminal.keys("C-b", "d")
    terminal.shows("ended=0")


def test_watching_without_typing(terminal: Terminal, builder: str) -> None:
    terminal.type(f"unset TMUX; {AF} attach --read-only {builder}")
    wait_until(shows_builder(builder, readonly=1), what="a client that only reads")


def test_inside_the_same_server_the_client_is_switched(terminal: Terminal, builder: str, repo: Path) -> None:
    tmux("new-session", "-d", "-s", "work", "-c", str(repo), "env", "PS1=work$ ", "bash", "--norc")
    terminal.type("unset TMUX; tmux attach -t =work")
    terminal.shows("work$")
    terminal.type(f"{AF} attach {builder}; echo ended=$?")
    wait_until(shows_builder(builder), what="the client to be switched")
    terminal.keys("C-b", "L")  # back to the session it came from
    terminal.shows("ended=0")


def test_inside_another_server_it_is_nested(terminal: Terminal, builder: str) -> None:
    terminal.type(f"{AF} attach {builder}; echo ended=$?")
    wait_until(shows_builder(builder), what="a client of the builder's session")
    assert tmux("list-sessions", "-F", "#{session_name}", server="outer") == "terminal"
    terminal.keys("C-b", "d")  # keys sent to the pane go past the outer server to the inner one
    terminal.shows("ended=0")


def test_the_other_commands_see_the_builder_from_another_server(terminal: Terminal, builder: str) -> None:
    terminal.type(f"{AF} status")
    terminal.shows("idle")


def test_spawn_and_attach_at_once(terminal: Terminal, repo: Path) -> None:
    terminal.type(f"unset TMUX; {AF} spawn --shell --runtime demo --attach")
    wait_until(lambda: len(clients()) == 1, what="a client")
    (id,) = traces(repo).records
    wait_until(shows_builder(id), what="the builder's session")


def test_a_short_name_from_inside_a_builder(terminal: Terminal, builder: str, af: Af) -> None:
    """From a builder's own pane, where `af` is another builder's way to look at it."""
    other = json.loads(af("spawn", "--shell", "--runtime", "demo", "--json").stdout)["builder"]["id"]
    af("wait", other, "--timeout", "300")
    terminal.type(f"unset TMUX; {AF} attach {other}")
    wait_until(shows_builder(other), what="a client")
    assert af("send", other, "[[exit:0]]").returncode in (0, 5)
    wait_until(lambda: "exited" in af("status", other).stdout, what="the runtime to end")
    terminal.keys("Enter")
    terminal.type(f"{AF} attach {builder}")
    wait_until(shows_builder(builder), what="the client to be switched")


def test_without_a_terminal(af: Af, builder: str) -> None:
    done = af("attach", builder)
    assert done.returncode == 1
    assert f"hint: af capture {builder}" in done.stderr


def test_spawn_and_attach_without_a_terminal_makes_nothing(af: Af, repo: Path) -> None:
    done = af("spawn", "--shell", "--runtime", "demo", "--attach")
    assert done.returncode == 1
    assert traces(repo).left() == {}
    assert af("spawn", "--shell", "--runtime", "demo", "--attach", "--json").returncode == 2


def test_a_builder_without_a_session_names_the_way_on(af: Af, builder: str) -> None:
    assert af("stop", builder).returncode == 0
    done = af("attach", builder)
    assert done.returncode == 1
    assert f"hint: af resume {builder}" in done.stderr

"""`logs -f` and `af forward` for a builder on another machine, each until it is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from agent_farm.ssh.connection import forward_argv
from agent_farm.ssh.ssh_url import Address
from tests.conftest import Af
from tests.fleet.machines import Node
from tests.fleet.test_fleet import ok, shown, spawned
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def begun(repo: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "agent_farm", *words],
        cwd=repo, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_its_events_are_followed_until_it_has_ended(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    with begun(repo, "logs", "-f", id) as following:
        assert following.stdout
        assert following.stdout.readline() != ""
        ok(af, "send", id, "And now the logout")
        ok(af, "stop", id)
        rest = following.stdout.read()
        assert following.wait() == 0
    assert "stopped" in rest


def test_a_port_here_goes_to_its_port_there(af: Af, big: Node, repo: Path, tmp_path: Path) -> None:
    id = spawned(af, "--shell")
    first = shown(af, id)["ports"][0]
    (tmp_path / "served").mkdir()
    (tmp_path / "served/hello.txt").write_text("hello from there")
    words = (
        sys.executable,
        "-m",
        "http.server",
        str(first),
        "--bind",
        "127.0.0.1",
        "-d",
        str(tmp_path / "served"),
    )
    there = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with begun(repo, "forward", id) as passing:
        try:
            assert passing.stdout
            line = passing.stdout.readline()
            assert f"on big (port {first})" in line
            address = line.split()[0]
            wait_until(lambda: _read(f"{address}/hello.txt") == "hello from there", what="the file of there")
        finally:
            passing.send_signal(signal.SIGINT)
            assert passing.wait(60) == 0
            there.kill()
            there.wait()
    assert _read(f"{address}/hello.txt") is None
    here = ok(af, "spawn", "--runtime", "demo", "--shell").strip()
    assert f"{here} is on this machine" in af("forward", here).stderr


def test_killed_it_leaves_no_ssh(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    with begun(repo, "forward", id) as passing:
        assert passing.stdout
        address = passing.stdout.readline().split()[0]
        (ssh,) = psutil.Process(passing.pid).children()
        passing.kill()
    wait_until(lambda: not ssh.is_running(), what="the end of its ssh")
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address, timeout=5)


def test_ports_are_those_of_loopback_alone() -> None:
    argv = forward_argv(Address("big"), {4000: 4001})
    assert "127.0.0.1:4000:127.0.0.1:4001" in argv


def _read(address: str) -> str | None:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return None

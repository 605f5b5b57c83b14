"""A Ray cluster on this machine: a head, and nodes that each have a home, tmux and farms of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_farm.engine.child import answer_here
from agent_farm.engine.contract import Engine
from agent_farm.engine.held import HeldEngine
from agent_farm.engine.nodes import end_node, start_head
from agent_farm.engine.plain import Plain, PlainMachine
from agent_farm.engine.ray_files import make_token, token_file
from agent_farm.ssh.connection import ask
from agent_farm.ssh.ssh_url import Address
from tests.conftest import Af, end_processes, end_tmux_servers
from tests.fleet.machines import Node as SshNode
from tests.own_python import OwnPython

LOOPBACK = "127.0.0.1"
AF = Path(sys.executable).with_name("af")


@dataclass
class Under:
    engine: Engine
    lose: Callable[[str], None]


def plain_here() -> Under:
    machines = {
        name: PlainMachine(lambda data, seconds: answer_here(data, seconds), 2) for name in ("n1", "n2")
    }
    return Under(Plain(machines), lambda host: machines.__delitem__(host))


def plain_over_ssh(machine: Callable[[str], SshNode]) -> Under:
    """Each is a real sshd, with a home of its own."""
    nodes = {name: machine(name) for name in ("n1", "n2")}
    words = {name: [str(node.program), "fleet", "answer"] for name, node in nodes.items()}

    def asked(name: str) -> PlainMachine:
        return PlainMachine(lambda data, seconds: ask(Address(name), words[name], data, seconds=seconds), 2)

    machines = {name: asked(name) for name in nodes}

    def lose(host: str) -> None:
        nodes[host].stop()
        del machines[host]

    return Under(Plain(machines), lose)


@dataclass
class Node:
    """A machine of the cluster: processes that have its home."""

    name: str
    home: Path
    sockets: Path
    runtime: Path
    python: OwnPython

    @property
    def directory(self) -> Path:
        return self.home

    def runs(self, *argv: str | Path) -> None:
        """Whatever is asked there from now on is asked of this program."""
        self.python.runs("fleet answer", *argv)

    def is_sound(self) -> None:
        """Its program is `af` again."""
        self.python.is_sound()

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "AF_"))},
            "HOME": str(self.home),
            "TMUX_TMPDIR": str(self.sockets),
            "TMPDIR": str(self.home / "tmp"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "AF_SERVER": "off",
        }

    @property
    def state(self) -> Path:
        return self.home / ".local/state/agent-farm"

    @property
    def farms(self) -> list[Path]:
        return sorted((self.state / "fleet").glob("[!.]*"))

    @property
    def pid(self) -> int:
        return int(json.loads((self.state / "ray/node.json").read_text())["pid"])

    def run(self, *words: str, input: str | None = None, cwd: Path | None = None) -> str:
        """A program there, as its user would run it."""
        done = subprocess.run(
            words, cwd=cwd or self.home, env=self.environment, capture_output=True, text=True, input=input,
            timeout=400, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass
class Cluster:
    directory: Path
    short: Path
    runtime: Path
    address: str = ""
    tls: str = ""
    nodes: dict[str, Node] = field(default_factory=dict)

    def start(self) -> None:
        make_token()
        self.address = f"{LOOPBACK}:{free_port()}"
        start_head(LOOPBACK, int(self.address.rpartition(":")[2]), name="home", slots=0)

    def up(self, af: Af) -> None:
        """The same by the command, for the farm that `af` is run in."""
        port = free_port()
        done = af("fleet", "up", "--port", str(port))
        assert done.returncode == 0, done.stderr
        self.address = f"{LOOPBACK}:{port}"

    def machine(self, name: str) -> Node:
        home = self.directory / name
        (home / "tmp").mkdir(parents=True)
        (home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        runtime = self.short / str(len(self.nodes))  # Ray adds much to it for its sockets
        runtime.mkdir()
        sockets, python = Path(tempfile.mkdtemp(dir=self.short)), OwnPython.at(home / "python")
        one = self.nodes[name] = Node(name, home, sockets, runtime, python)
        return one

    def join(self, name: str, *, slots: int) -> Node:
        """By the line that `af fleet up` prints, as the user of that machine."""
        node = self.nodes.get(name) or self.machine(name)
        words = ("-m", "agent_farm", "fleet", "join", self.address, "--name", name, "--slots", str(slots))
        node.run(str(node.python.path), *words, input=token_file().read_text())
        return node

    def lose(self, name: str) -> Node:
        """As when its power fails: panes and runtimes end with Ray, and nothing is said."""
        self.kill(name)
        end_tmux_servers(self.nodes[name].sockets)
        end_processes(self.nodes[name].home)
        return self.nodes[name]

    def kill(self, name: str) -> None:
        """Ray alone, and nothing is said: builders go on, and nothing reaches them."""
        self.signal(name, signal.SIGKILL)

    def signal(self, name: str, number: signal.Signals) -> None:
        """To every process of Ray's there at once: stopped ones are as out of reach as by a cable that is
        pulled."""
        wanted = f"HOME={self.nodes[name].home}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                of_ray = any(word in words for word in (b"/session_", b"ray::", b"engine.ray_node"))
                if of_ray and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), number)

    def end(self) -> None:
        for name in self.nodes:
            self.kill(name)
        if self.address:
            HeldEngine(self.address, self.tls).end()
        end_node()
        for node in self.nodes.values():
            end_tmux_servers(node.sockets)
            end_processes(node.home)
            for place in (node.sockets, node.runtime):
                shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(self.runtime, ignore_errors=True)


@contextmanager
def cluster_in(directory: Path, short: Path) -> Iterator[Cluster]:
    """A head here, which takes no builders; `join` makes machines. All of it ends with the block."""
    runtime = short / "r"
    runtime.mkdir()
    made = Cluster(directory / "machines", short, runtime)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        try:
            yield made
        finally:
            made.end()


def free_port() -> int:
    """Below those that Ray gives to workers by itself."""
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])

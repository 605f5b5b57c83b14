"""`af` beside other tools that run agents in worktrees, by the clock and taking turns.

Each is installed from its registry into a place of its own (`.venv/peers/NAME`) and works in a home and a
repository of its own, with `cat` as the agent, or a stub of a CLI. One that cannot be installed, or fails, is
left out by name.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benchmarks.stage import AF, Command, Rows, Stage, ratio, stage, turns
from tests.waiting import wait_until

HOMES = Path(sys.executable).parents[1] / "peers"
ROUNDS = 4
_INSTALL_SECONDS = 600

Verbs = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Peer:
    """`verbs` are words after the program, by those of `af`; `{}` is a name of its own.

    `packages` are what pip installs, `crate` is what cargo compiles. `ready` makes its stage ready.
    """

    name: str
    program: str
    verbs: Verbs
    packages: tuple[str, ...] = ()
    crate: str = ""
    ready: Callable[[Stage, Path], AbstractContextManager[Stage]] = lambda on, _: nullcontext(on)
    why_not: str = ""


@contextmanager
def cao_server(on: Stage, home: Path) -> Iterator[Stage]:
    """Its own stub of a provider wants a program that echoes. A pane's shell is a login shell."""
    stub = on.directory / "tools/mock_cli"
    stub.parent.mkdir()
    stub.write_text(
        "#!/bin/sh\nprintf '❯ '\nwhile read -r line; do printf '> MOCK: %s\\n❯ ' \"$line\"; done\n"
    )
    stub.chmod(0o755)
    (on.directory / ".profile").write_text(f"PATH={stub.parent}:$PATH\n")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    on = Stage(on.directory, {**on.env, "CAO_API_PORT": port, "LANG": "C.UTF-8"})
    on.run(home / "bin/cao", "init")
    log = (on.directory / "cao.log").open("wb")
    server = subprocess.Popen(
        [home / "bin/cao-server"], cwd=on.repository, env=dict(on.env), stdout=log, stderr=log
    )
    try:
        wait_until(lambda: _answers(port), timeout=60, what="cao-server")
        on.run(home / "bin/cao", "install", "developer", "--provider", "mock_cli")
        yield on
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def _answers(port: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/health"))
    except urllib.error.URLError:
        return False


_CAO = ("--agents", "developer", "--provider", "mock_cli", "--headless", "--auto-approve")
PEERS = (
    Peer(
        "mngr",
        "mngr",
        {
            "--help": ("--help",),
            "spawn": ("create", "{}", "--command", "cat", "--no-connect"),
            "status": ("list",),
            "send": ("message", "{}", "-m", "Hello"),
            "prune": ("destroy", "{}", "--force", "--no-gc", "--remove-created-branch"),
        },
        ("imbue-mngr", "pyinfra<3.7"),  # a later pyinfra cannot start a process in a thread
    ),
    Peer(
        "cli-agent-orchestrator",
        "cao",
        {
            "--help": ("--help",),
            "spawn": ("launch", *_CAO, "--session-name", "{}"),  # without a worktree, and until it is idle
            "status": ("session", "list"),
            "send": ("session", "send", "cao-{}", "Hello", "--async"),
            "prune": ("shutdown", "--session", "cao-{}"),
        },
        ("cli-agent-orchestrator",),
        ready=cao_server,
    ),
    Peer(
        "workmux",
        "workmux",
        {
            "--help": ("--help",),
            "spawn": ("add", "{}", "--background"),
            "status": ("list",),
            "send": ("send", "{}", "Hello"),
            "prune": ("remove", "{}", "--force"),
        },
        crate="workmux",
    ),
    Peer("claude-squad", "cs", {}, why_not="it is a Go program with releases on GitHub, in no registry"),
)
OURS: Verbs = {
    "--help": ("--help",),
    "spawn": ("spawn", "--shell", "--runtime", "demo", "--name", "{}"),
    "status": ("status",),
    "send": ("send", "{}", "Hello"),
    "prune": ("prune", "--stop", "{}"),
}


def main() -> Rows:
    for peer in PEERS:
        program, why_not = (None, peer.why_not) if peer.why_not else _installed(peer)
        if program is None:
            yield f"{peer.name}: left out", why_not
        else:
            yield from _compared(peer, program)


def _compared(peer: Peer, program: Path) -> Rows:
    """Round by round: a builder of each is made, listed, told something and removed."""
    with ExitStack() as stack:
        here, there = stack.enter_context(stage()), stack.enter_context(stage())
        there = stack.enter_context(peer.ready(there, HOMES / peer.name))
        for verb, words in peer.verbs.items():
            names = {side: map("peer{}".format, count()) for side in ("ours", "theirs")}
            ours = _each(here, AF, OURS[verb], names["ours"])
            theirs = _each(there, program, words, names["theirs"])
            try:
                times = turns({"ours": ours, "theirs": theirs}, rounds=ROUNDS)
            except SystemExit as error:
                said = [line for line in str(error).splitlines() if any(map(str.isalpha, line))]
                yield f"{peer.name} {' '.join(words)}", f"fails here: {said[-1].strip(' |')[:90]}"
            else:
                yield f"{peer.name} {words[0]} / af {OURS[verb][0]}", ratio(times["theirs"], times["ours"])


def _each(on: Stage, program: Path, words: Command, names: Iterator[str]) -> Callable[[], object]:
    def call() -> None:
        name = next(names)
        on.run(program, *(str(word).format(name) for word in words))

    return call


def _installed(peer: Peer) -> tuple[Path | None, str]:
    """The program, or why there is none."""
    home = HOMES / peer.name
    program = home / "bin" / peer.program
    if program.exists():
        return program, ""
    if peer.crate:
        if (cargo := shutil.which("cargo")) is None:
            return None, "it is on crates.io, and there is no cargo here"
        install: list[str] = [cargo, "install", "--quiet", "--root", str(home), peer.crate]
    else:
        venv.create(home, with_pip=True)
        install = [str(home / "bin/pip"), "install", "--quiet", *peer.packages]
    env = {**os.environ, "CARGO_NET_RETRY": "0"}
    try:
        done = subprocess.run(install, env=env, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"installing it takes more than {_INSTALL_SECONDS} s"
    said = "".join(done.stderr.strip().splitlines()[-1:]).strip()
    if program.exists():
        return program, ""
    why = "its registry cannot be reached" if "resolve host" in said else said
    return None, f"it cannot be installed here: {why}"

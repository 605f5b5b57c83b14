"""`af` beside other tools that run agents in worktrees, as far as a registry has them and they run here.

Each is installed from PyPI into an environment of its own (`.venv/peers/NAME`) and works in a home and a
repository of its own, with `sleep` as the agent. One that cannot be installed or fails is left out by name.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.ratios import processor_seconds
from benchmarks.stage import AF, Stage, show, stage

HOMES = Path(sys.executable).parents[1] / "peers"
ROUNDS = 5


@dataclass(frozen=True)
class Peer:
    """`verbs` are words after the program; `{}` is a name of its own. `why_not` says what it lacks."""

    name: str
    package: str | None
    program: str
    verbs: dict[str, tuple[str, ...]]
    why_not: str | None = None


PEERS = (
    Peer(
        "mngr",
        "imbue-mngr",
        "mngr",
        {
            "--help": ("--help",),
            "list": ("list",),
            "spawn": ("create", "{}", "--command", "sleep 600", "--no-connect"),
        },
    ),
    Peer(
        "cli-agent-orchestrator",
        "cli-agent-orchestrator",
        "cao",
        {"--help": ("--help",)},
        "a session needs the CLI of one of its providers, and an account",
    ),
    Peer("claude-squad", None, "cs", {}, "it is a binary from GitHub, in no registry"),
    Peer("workmux", None, "workmux", {}, "it is on crates.io alone, to be compiled"),
)
OURS = {
    "--help": ("--help",),
    "list": ("status",),
    "spawn": ("spawn", "--shell", "--runtime", "demo"),
}


def main() -> None:
    with stage() as on:
        ours = {verb: _median(on, AF, words) for verb, words in OURS.items()}
    for peer in PEERS:
        if peer.why_not:
            print(f"  {peer.name}: {'' if peer.verbs else 'left out: '}{peer.why_not}")
        if peer.verbs:
            _compare(peer, ours)


def _compare(peer: Peer, ours: dict[str, float]) -> None:
    program = _installed(peer)
    if program is None:
        print(f"  {peer.name}: left out, since {peer.package} could not be installed")
        return
    rows = []
    with stage() as on:
        for verb, words in peer.verbs.items():
            try:
                theirs = _median(on, program, words)
            except SystemExit as error:
                said = [line for line in str(error).splitlines() if any(map(str.isalpha, line))]
                reason = said[-1].strip(" |")[:90]
                rows.append((f"{peer.name} {verb}", f"fails here: {reason}"))
                continue
            rows.append((f"{peer.name} {verb} / af {OURS[verb][0]}", f"{theirs / ours[verb]:.1f}"))
    show(rows)


def _installed(peer: Peer) -> Path | None:
    home = HOMES / peer.name
    program = home / "bin" / peer.program
    if not program.exists():
        venv.create(home, with_pip=True)
        pip = [str(home / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", str(peer.package)]
        subprocess.run(pip, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program if program.exists() else None


def _median(on: Stage, program: Path, words: Sequence[str]) -> float:
    """Processor seconds of one call, with what it waits for."""
    names = (f"peer{number}" for number in itertools.count())

    def call() -> Callable[[], object]:
        name = next(names)
        argv = [word.format(name) if word == "{}" else word for word in words]
        return lambda: on.run(program, *argv)

    call()()
    return median(processor_seconds(call()) for _ in range(ROUNDS))

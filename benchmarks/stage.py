"""A private home, tmux server and repository for benchmarks, and fair timing of commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

AF = Path(sys.executable).parent / "af"


@dataclass(frozen=True)
class Stage:
    directory: Path
    env: Mapping[str, str]

    @property
    def repository(self) -> Path:
        return self.directory / "repository"

    def run(self, *argv: str | Path) -> str:
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=self.repository,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{argv}: {done.stderr}")
        return done.stdout.strip()


@contextmanager
def stage(files: int = 50) -> Iterator[Stage]:
    """Everything in one directory that is gone afterwards, with all processes of its tmux server."""
    directory = Path(tempfile.mkdtemp(prefix="af-bench-"))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "XDG_STATE_HOME": str(directory / "state"),
        "TMUX_TMPDIR": str(directory),
        "GIT_CONFIG_NOSYSTEM": "1",
        "SHELL": "/bin/sh",
        "TERM": "xterm-256color",
    }
    made = Stage(directory, env)
    try:
        made.repository.mkdir()
        (directory / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.invalid\n")
        made.run("git", "init", "-q", "-b", "main")
        for number in range(files):
            file = made.repository / f"d{number // 100}" / f"f{number}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{number}\n" * 100)
        made.run("git", "add", "-A")
        made.run("git", "commit", "-q", "-m", "first")
        yield made
    finally:
        subprocess.run([AF, "butler", "stop"], cwd=made.repository, env=env, capture_output=True)
        subprocess.run(["tmux", "kill-server"], env=env, capture_output=True)
        shutil.rmtree(directory, ignore_errors=True)


def spawn_idle(on: Stage, number: int) -> list[str]:
    """That many more demo builders with nothing to do; all that there are."""
    for begin in range(0, number, 100):
        on.run(AF, "spawn", "--shell", "--runtime", "demo", "-n", str(min(100, number - begin)))
    settle(on)
    return builders(on)


def builders(on: Stage) -> list[str]:
    return [path.name for path in (on.repository / ".builders").iterdir() if not path.name.startswith(".")]


def settle(on: Stage) -> None:
    """Until all turns have ended, so that none competes with what is measured next."""
    on.run(AF, "wait", *builders(on), "--timeout", "600")


def compare(
    candidates: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    after: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """The least seconds of each: the work itself, not the neighbours. They take turns."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, action in candidates.items():
            begin = time.perf_counter()
            action()
            if turn:  # the first round warms caches
                times[name].append(time.perf_counter() - begin)
        after()  # what still runs would compete with the next round
    return {name: min(values) for name, values in times.items()}


def show(rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"  {name.ljust(width)}  {value}")

"""A private home, tmux server and repository for benchmarks, and fair timing of commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

AF = Path(sys.executable).parent / "af"
IMPORT_CLICK = (sys.executable, "-c", "import click")

Command = Sequence[str | Path]
Rows = Iterable[tuple[str, object]]


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


def run_all(on: Stage, commands: Iterable[Command]) -> None:
    for command in commands:
        on.run(*command)


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


@dataclass(frozen=True)
class Spread:
    """The quartiles of several measurements."""

    low: float
    median: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def spread(values: Sequence[float]) -> Spread:
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    return Spread(round(low, 3), round(middle, 3), round(high, 3))


def ratio(ones: Sequence[float], others: Sequence[float]) -> Spread:
    """Of pairs: what disturbs a whole round disturbs both."""
    return spread([one / other for one, other in zip(ones, others, strict=True)])


def difference(ones: Sequence[float], others: Sequence[float]) -> Spread:
    return spread([one - other for one, other in zip(ones, others, strict=True)])


def turns(
    candidates: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    after: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Seconds of each in each round. They take turns; the round before the first warms caches."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds + 1):
        for name, action in candidates.items():
            times[name].append(seconds(action))
        after()  # what still runs would compete with the next round
    return {name: values[1:] for name, values in times.items()}


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin

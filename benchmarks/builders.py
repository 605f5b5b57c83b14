"""Spawn against raw git and tmux; start-up against importing click; status and spawn at scale."""

from __future__ import annotations

import itertools
import sys
import time

from benchmarks.stage import AF, Stage, compare, settle, show, stage


def main() -> None:
    with stage() as small:
        _start_up(small)
        _spawn(small)
        _many(small)
    with stage(files=20_000) as large:
        _large(large)


def _start_up(small: Stage) -> None:
    times = compare(
        {
            "click": lambda: small.run(sys.executable, "-c", "import click"),
            "help": lambda: small.run(AF, "--help"),
            "status": lambda: small.run(AF, "status"),
        }
    )
    show(
        [
            ("af --help / import click", f"{times['help'] / times['click']:.2f} (bar: 2)"),
            ("af status, no builders / import click", f"{times['status'] / times['click']:.2f} (bar: 2)"),
        ]
    )


def _spawn(small: Stage) -> None:
    numbers = itertools.count()

    def raw() -> None:
        name = f"raw{next(numbers)}"
        path = small.directory / "raw" / name
        small.run("git", "worktree", "add", "-q", "--no-track", "-b", name, path)
        small.run("tmux", "new-session", "-d", "-s", name, "-c", path, "--", "sleep", "600")

    spent = compare({"raw": raw, "af": lambda: _timed(small)}, rounds=15, after=lambda: settle(small))
    more = spent["af"] - spent["raw"]
    show(
        [
            ("af spawn / git worktree add + tmux new-session", f"{spent['af'] / spent['raw']:.2f}"),
            ("af spawn takes longer by", f"{more:.3f} s (bar: 0.20 s)"),
        ]
    )


def _timed(small: Stage) -> None:
    small.run(AF, "spawn", "Fix auth", "--runtime", "demo")


def _many(small: Stage) -> None:
    few = len(list((small.repository / ".builders").iterdir()))
    before = compare({"status": lambda: small.run(AF, "status")}, rounds=5)["status"]
    for _ in range(60 - few):
        _timed(small)
    settle(small)
    after = compare({"status": lambda: small.run(AF, "status")}, rounds=5)["status"]
    begin = time.perf_counter()
    _timed(small)
    spawn = time.perf_counter() - begin
    show(
        [
            (f"af status, 60 builders / {few} builders", f"{after / before:.2f} ({after:.2f} s)"),
            ("af spawn as the 61st builder", f"{spawn:.2f} s"),
        ]
    )


def _large(large: Stage) -> None:
    def spawn() -> float:
        begin = time.perf_counter()
        _timed(large)
        return time.perf_counter() - begin

    cold = min(spawn() for _ in range(3))
    large.run(AF, "config", "set", "pool.size", "3")
    large.run(AF, "pool", "fill")
    pooled = min(spawn() for _ in range(2))
    show(
        [
            (
                "20,000 files: af spawn / with pool.size = 3",
                f"{cold / pooled:.1f} ({cold:.2f} s, {pooled:.2f} s)",
            )
        ]
    )

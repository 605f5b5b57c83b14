"""Spawn against raw git and tmux; start-up against importing click; status and spawn at scale."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

from benchmarks.stage import AF, Stage, compare, settle, show, stage


def main() -> None:
    with stage() as small:
        _start_up(small)
        _spawn(small)
        _many(small)
    for files in (20_000, 100_000):
        with stage(files=files) as large:
            _large(large, files)


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


def _large(large: Stage, files: int) -> None:
    """Cold is a branch that is there: no ready worktree is taken for one. They take turns."""
    large.run(AF, "config", "set", "--user", "pool.size", "1")
    spent: dict[str, list[float]] = {}

    def timed(name: str, *argv: str | Path) -> None:
        begin = time.perf_counter()
        large.run(*argv)
        spent.setdefault(name, []).append(time.perf_counter() - begin)

    spawn = (AF, "spawn", "--shell", "--runtime", "demo")
    for number in range(3 if files < 50_000 else 2):
        path = large.directory / f"raw-{number}"
        begin = time.perf_counter()
        large.run("git", "worktree", "add", "-q", "--no-track", "-b", f"raw-{number}", path)
        large.run("tmux", "new-session", "-d", "-s", f"raw-{number}", "-c", path, "--", "sleep", "600")
        spent.setdefault("floor", []).append(time.perf_counter() - begin)
        large.run("git", "branch", f"cold-{number}")
        timed("cold", *spawn, "--branch", f"cold-{number}")
        _whole_pool(large)
        timed("warm", *spawn)
        _whole_pool(large)
        for name in range(5):
            (large.repository / f"d{name}/f{name * 100}.txt").write_text(f"{number}\n")
        large.run("git", "commit", "-q", "-a", "-m", f"five files {number}")
        timed("moved", *spawn)
        _whole_pool(large)
    floor = min(spent["floor"])
    bars = {"cold": 1.10, "warm": 0.15, "moved": 0.15}
    told = {"cold": "", "warm": " from a ready worktree", "moved": " whose base moved by five files"}
    show(
        [
            (
                f"{files:,} files: af spawn{told[name]} / git worktree add + tmux new-session",
                f"{min(spent[name]) / floor:.2f} (bar: {bar:.2f}; {min(spent[name]):.2f} s, {floor:.2f} s)",
            )
            for name, bar in bars.items()
        ]
    )


def _whole_pool(large: Stage) -> None:
    while large.run(AF, "pool", "fill") != "1 ready":  # another process is at it
        time.sleep(0.2)
    settle(large)

"""Any `af` command that stops itself just before its N-th step (see stop_at.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.waiting import wait_until

_STOP_AT = Path(__file__).with_name("stop_at.py")


def stopped(repo: Path, which: str, step: int | str, *words: str) -> subprocess.CompletedProcess[str]:
    """`step` may also be a word in what the step is about. Standard error names the step.

    Return code 0 when the command has fewer steps. The process has a session of its own, as in a terminal.
    """
    return subprocess.run(
        [sys.executable, str(_STOP_AT), which, str(step), *words],
        cwd=repo,
        # what is written is counted, and a compiled module would be
        env={**os.environ, "PYTHONPATH": str(_STOP_AT.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=300,
    )


@contextmanager
def halted(repo: Path, step: int | str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """One that stands still just before that step, until it gets SIGCONT."""
    with subprocess.Popen(
        [sys.executable, str(_STOP_AT), "SIGSTOP", str(step), *words],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(_STOP_AT.parents[2])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            seen = psutil.Process(process.pid)
            wait_until(lambda: seen.status() == psutil.STATUS_STOPPED, what=f"a stop at {step}")
            yield process
        finally:
            process.kill()


def killed(repo: Path, step: int | str, *words: str) -> subprocess.CompletedProcess[str]:
    return stopped(repo, "SIGKILL", step, *words)


def stopped_spawn(
    repo: Path, which: str, step: int | str, *args: str, task: str = "Fix it"
) -> subprocess.CompletedProcess[str]:
    return stopped(repo, which, step, "spawn", "--runtime", "demo", *(args or (task,)))


def number_of(step: subprocess.CompletedProcess[str]) -> int:
    return number_in(step.stderr)


def number_in(told: str) -> int:
    return int(told.partition("before step ")[2].partition(":")[0])

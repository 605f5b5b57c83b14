"""`af spawn` that stops itself just before its N-th step (see stop_at.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_STOP_AT = Path(__file__).with_name("stop_at.py")


def stopped_spawn(
    repo: Path, which: str, step: int | str, *args: str, task: str = "Fix it"
) -> subprocess.CompletedProcess[str]:
    """`step` may also be a word in what the step is about. Standard error names the step.

    The process has a session of its own, as in a terminal.
    """
    words = args or (task,)
    return subprocess.run(
        [sys.executable, str(_STOP_AT), which, str(step), "spawn", "--runtime", "demo", *words],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(_STOP_AT.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=60,
    )


def number_of(step: subprocess.CompletedProcess[str]) -> int:
    return int(step.stderr.partition("before step ")[2].partition(":")[0])

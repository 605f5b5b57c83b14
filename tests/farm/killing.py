"""Any `af` command that stops itself just before its N-th step (see stop_at.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_STOP_AT = Path(__file__).with_name("stop_at.py")


def killed(repo: Path, step: int | str, *words: str) -> subprocess.CompletedProcess[str]:
    """`kill -9` at that step; standard error names it. Return code 0 when the command has fewer steps."""
    return subprocess.run(
        [sys.executable, str(_STOP_AT), "SIGKILL", str(step), *words],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(_STOP_AT.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=60,
    )

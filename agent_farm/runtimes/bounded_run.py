"""Runs a program to its end, within a time limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence


def run_bounded(
    argv: Sequence[str], *, cwd: str | os.PathLike[str], seconds: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Its output, whatever its exit code; its standard input is empty."""
    return subprocess.run(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
    )

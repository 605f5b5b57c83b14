"""A program that is asked something, and answers within a bound."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence


def heard(
    argv: Sequence[str], *, cwd: str | os.PathLike[str], seconds: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """All that it said, whatever its exit code; nothing is on its standard input."""
    return subprocess.run(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
    )

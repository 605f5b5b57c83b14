"""`af` as a user whom file permissions stop, also where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_RIGHTS = "-dac_override,-dac_read_search,-fowner,-chown"


def command(*words: str) -> list[str]:
    """`af WORDS` without the rights of root over other users' files."""
    af = [sys.executable, "-m", "agent_farm", *words]
    if os.geteuid():
        return af
    if shutil.which("setpriv") is None:
        pytest.skip("root, and no setpriv to be an ordinary user")
    return ["setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}", "--", *af]


def make(repo: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*words), cwd=repo, capture_output=True, text=True, check=False)

    return run


def give_away(path: Path) -> None:
    """To another user, as a container does with its volumes; only root can."""
    if os.geteuid():
        pytest.skip("only root can give files to another user")
    for directory, _, files in os.walk(path, topdown=False):
        for name in files:
            os.chown(Path(directory) / name, 54321, -1)
        os.chown(directory, 54321, -1)

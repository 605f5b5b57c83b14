"""`make demo`: what it shows fits the terminal that it is started in."""

from __future__ import annotations

import os
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAY = """
from pathlib import Path
from tools.demo import Scratch
print(Scratch(Path("x")).environment()["COLUMNS"])
"""


def test_its_commands_know_how_wide_the_terminal_is() -> None:
    """Their output is read and printed: they have no terminal to ask."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 73))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    try:
        subprocess.run(
            [sys.executable, "-c", SAY], cwd=ROOT, stdout=theirs, env=environment, check=True, timeout=60
        )
        assert os.read(ours, 100).split() == [b"73"]
    finally:
        os.close(ours)
        os.close(theirs)

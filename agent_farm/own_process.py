"""Starting `af` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def python_argv(module: str, *words: str) -> list[str]:
    """The command that runs a module of this very copy; no file in the working directory can replace it."""
    home = str(Path(__file__).parents[1])
    code = (
        "import os, sys;"  # after the standard library, before everything that is installed
        f"sys.path.insert(sys.path.index(os.path.dirname(os.__file__)) + 1, {home!r});"
        f"from {module} import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, "-I", "-c", code, *words]


def start_af(root: Path, *words: str, listens: bool = False) -> subprocess.Popen[bytes]:
    """`af` in the background: it prints nothing, and Ctrl-C at a terminal does not reach it. `listens`: its
    standard input is a pipe, and the end of that pipe tells it that nobody needs it."""
    return subprocess.Popen(
        python_argv("agent_farm.cli.main", *words),
        cwd=root,
        stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

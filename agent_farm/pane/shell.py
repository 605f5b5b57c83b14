"""The shell that is left in a builder's worktree."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from agent_farm.pane.pane_terminal import say
from agent_farm.pane.signals import default_signals

_LAST_RESORT = ("/bin/sh", "-i")


def become_shell(shell: Sequence[str], worktree: Path, env: dict[str, str]) -> NoReturn:
    """In place of this process: the pane's program is then the shell, which tmux and `af` can see."""
    for directory in (worktree, worktree.parent, Path(env.get("HOME") or "/"), Path("/")):
        with suppress(OSError):
            os.chdir(directory)
            break
    default_signals()
    for argv in (shell, _LAST_RESORT):
        try:
            os.execvpe(argv[0], list(argv), env)
        except OSError as error:
            say(f"[agent-farm] {argv[0]}: {error.strerror}")
    sys.exit(1)

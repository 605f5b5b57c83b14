"""Becomes the shell that remains in a builder's worktree."""

from __future__ import annotations

import os
import sys

from agent_farm.lean import suppress
from agent_farm.pane.pane_terminal import say
from agent_farm.pane.signals import default_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_LAST_RESORT = ("/bin/sh", "-i")


def become_shell(shell: Sequence[str], worktree: str, env: dict[str, str]) -> NoReturn:
    """Replaces this process, so that tmux and `af` see the shell as the pane's program."""
    for directory in (worktree, os.path.dirname(worktree), env.get("HOME") or "/", "/"):
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

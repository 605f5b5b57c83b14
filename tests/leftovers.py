"""What a run of the tests leaves behind: processes, and files outside the temporary directories."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from tests.gitrepo import git

CHECKOUT = Path(__file__).parents[1]
REAL_HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)
# What `af`, git, tmux and the AI CLIs write in the home of who uses them.
OF_THE_USER = (
    ".local/state/agent-farm", ".config/agent-farm", ".config/lctx", ".gitconfig", ".config/git",
    ".tmux.conf", ".codex", ".gemini", ".copilot", ".config/opencode", ".local/share/opencode",
)  # fmt: skip


def processes_of(*places: Path) -> list[str]:
    """Those that work below one of `places`, or have it in their words or their environment."""
    runner = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    others = [process for process in psutil.process_iter() if process.pid not in runner]
    return [f"{process.pid} {words}" for process in others for words in _told_of(process, places)]


def _told_of(process: psutil.Process, places: tuple[Path, ...]) -> Iterator[str]:
    with suppress(psutil.Error, OSError):
        words = " ".join(process.cmdline())
        told = f"{words} {process.cwd()} {process.environ()}"
        if any(re.search(rf"{re.escape(str(place))}(?!\w)", told) for place in places):
            yield words


def files_of_the_user() -> dict[Path, int]:
    """When each was written last."""
    tops = [REAL_HOME / name for name in OF_THE_USER]
    files = [path for top in tops for path in (top, *top.rglob("*"))]
    return {path: path.lstat().st_mtime_ns for path in files if path.exists()}


def changes_of_the_checkout() -> set[str]:
    return set(git(CHECKOUT, "status", "--porcelain", "--untracked-files=all").splitlines())

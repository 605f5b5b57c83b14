"""Runs a long git command and shows its progress."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from agent_farm.errors import ToolMissing
from agent_farm.git.git_process import Argument, GitError, git_environment

_KEPT = 40


def run_git_watched(
    cwd: Path, *args: Argument, show: Callable[[str], None], env: Mapping[str, str] | None = None
) -> None:
    """Hand each line of git's stderr, progress included, to `show`; on failure GitError with the last lines.

    git stays in the terminal's process group: Ctrl-C reaches it, and it removes its own lock files.
    """
    try:
        process = subprocess.Popen(
            ["git", *(os.fspath(arg) for arg in args)],
            cwd=cwd,
            env=git_environment() | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except FileNotFoundError as error:
        raise ToolMissing("git is not installed", hint="sudo apt-get install git") from error
    said: list[str] = []
    with process:
        assert process.stderr is not None
        try:
            for line in process.stderr:  # universal newlines: \r ends a progress line
                if text := line.strip():
                    said = [*said[-_KEPT:], text]
                    show(text)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        why = [line for line in said if line.startswith(("fatal:", "error:", "remote:"))] or said[-3:]
        raise GitError(
            f"git {args[0]} failed",
            why="\n".join(line.removeprefix("fatal:").removeprefix("error:").strip() for line in why) or None,
            status=process.returncode,
            stderr="\n".join(said),
        )

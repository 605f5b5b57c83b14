"""Telling a person: the configured command, on its own feet, with the facts in AF_* variables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence


def start_detached(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> str | None:
    """None, or why it could not be started. It outlives this process and its terminal."""
    try:
        subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=cwd if os.path.isdir(cwd) else "/",
            env=dict(env),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"{argv[0]}: {error}"
    return None


def facts(builder: str, runtime: str, worktree: str, event: Mapping[str, object]) -> dict[str, str]:
    known = {
        "AF_BUILDER_ID": builder,
        "AF_RUNTIME": runtime,
        "AF_WORKTREE": worktree,
        "AF_STATE": event.get("state"),
        "AF_EVENT": event.get("event"),
        "AF_REASON": event.get("reason"),
    }
    return {name: str(value or "").replace("\0", "") for name, value in known.items()}

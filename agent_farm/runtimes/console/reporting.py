"""Reporting events the way real CLIs do: lines of JSON, or a command that gets the payload as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress


def emit(line: Mapping[str, object]) -> None:
    """One event, to whoever reads our standard output line by line."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Hooks:
    def __init__(self, argv: tuple[str, ...], conversation: str, cwd: str) -> None:
        self._argv = argv
        self._common = {"session_id": conversation, "cwd": cwd}

    def report(self, event: str, **payload: object) -> None:
        """A hook that fails or hangs must not stop the agent."""
        if not self._argv:
            return
        text = json.dumps({"hook_event_name": event, **self._common, **payload})
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                self._argv,
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=10,
                check=False,
            )

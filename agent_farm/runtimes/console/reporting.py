"""Reporting events the way real CLIs do: a command, with the payload as JSON on its standard input."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress


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

"""adapter.log, which is the supervisor's standard output: what the CLI prints, and what is said of it."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress


class Log:
    """Never fails: a session does not end because nothing more can be written about it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._in_line = False

    def say(self, message: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        line = json.dumps({"at": at, "adapter": message}).encode() + b"\n"
        with self._lock:
            self._write(b"\n" + line if self._in_line else line)

    def copy(self, output: bytes) -> None:
        with self._lock:
            self._write(output)

    def _write(self, content: bytes) -> None:
        self._in_line = not content.endswith(b"\n")
        left = memoryview(content)
        with suppress(OSError):
            while left:
                left = left[os.write(self._descriptor, left) :]

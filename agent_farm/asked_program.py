"""A program that is sent a message on its standard input and answers in lines, up to a total size."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from agent_farm.errors import Unreachable

MOST_BYTES = 32 * 1024 * 1024
_LAST_WORDS = 4000


class AskedProgram:
    """All three streams of `process` are pipes; its starter ends it.

    With `ready`, the message is sent only after the program has printed that line.
    """

    def __init__(self, process: subprocess.Popen[bytes], message: bytes, ready: bytes | None = None) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._answer = process.stdout
        self._said: list[bytes] = []
        self._listens = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        self._writes = threading.Thread(target=_write, args=(process.stdin, message), daemon=True)
        self._ready = ready
        self._listens.start()
        if ready is None:
            self._writes.start()

    def lines(self, who: str) -> Iterator[bytes]:
        """Lines as they arrive; Unreachable if `who` answers with more than MOST_BYTES."""
        left = MOST_BYTES
        while line := self._answer.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise Unreachable(f"{who} answered more than {MOST_BYTES} bytes")
            if self._writes.ident is None and line.strip() == self._ready:
                self._writes.start()
            yield line

    def last_words(self) -> str | None:
        """The last line it printed besides its answer."""
        self._listens.join(1)  # its children may hold it open
        text = b"".join(self._said).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else None

    def _listen(self, stream: IO[bytes]) -> None:
        kept = 0
        with suppress(OSError, ValueError), stream:
            for line in stream:
                if kept < _LAST_WORDS:
                    self._said.append(line[:_LAST_WORDS])
                    kept += len(line)


def _write(stream: IO[bytes], message: bytes) -> None:
    with suppress(OSError, ValueError), stream:
        stream.write(message)

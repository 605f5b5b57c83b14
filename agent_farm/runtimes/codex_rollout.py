"""How often the model answered, which `codex exec --json` does not tell: one answer may call many tools."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_TRIES = 20  # it is there soon after the start, or nowhere
_COUNTED = (b'"token_count"', b'"total_token_usage"')


class Rollout:
    """Codex's own record of the thread, read on from where this run began."""

    def __init__(self, home: Path, thread: str, *, resumed: bool) -> None:
        self._pattern = (home / "sessions", f"*/*/*/rollout-*{thread}.jsonl")
        self._tries = 0
        self._file = self._found()
        self._offset = self._size() if resumed else 0
        self._answers = 0

    def answers(self) -> int:
        if self._file is None and self._tries < _TRIES:
            self._file = self._found()
        if self._file is None:
            return 0
        with suppress(OSError), open(self._file, "rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):  # being written
                    break
                self._offset += len(line)
                self._answers += all(word in line for word in _COUNTED)
        return self._answers

    def _found(self) -> Path | None:
        self._tries += 1
        directory, pattern = self._pattern
        return next(directory.glob(pattern), None)

    def _size(self) -> int:
        with suppress(OSError):
            return self._file.stat().st_size if self._file else 0
        return 0

"""`python answer_at.py TOLD VERB WHO N fleet answer`: the real `af`, which kills WHO before its N-th step.

WHO is `itself`, its `connection` or the number of a process. Only where it is asked for VERB; what it stops
at is written to the file TOLD, its own number to TOLD.pid. See tests/farm/stop_at.py.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path

from agent_farm.cli.main import main
from tests.farm.stop_at import stop_at


class _Asked(io.RawIOBase):
    """What home asks, which arms the stop once it is read."""

    def __init__(self, told: Path, verb: str, who: str, step: str) -> None:
        self._given = told, verb, who, step
        self._source = sys.stdin.buffer

    def readable(self) -> bool:
        return True

    def readall(self) -> bytes:
        data = self._source.read()
        told, verb, who, step = self._given
        if f'"verb":"{verb}"'.encode() in data:
            told.with_suffix(".pid").write_text(str(os.getpid()))
            victim = os.getppid() if who == "connection" else int(who) if who.isdecimal() else 0
            stop_at(step, signal.SIGKILL, told.open("a"), victim=victim)
        return data


if __name__ == "__main__":
    told, verb, who, step, *words = sys.argv[1:]
    asked = _Asked(Path(told), verb, who, step)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(asked))
    main(words[-2:])  # behind those of an interpreter

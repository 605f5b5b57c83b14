"""`python holder_at.py ARMED … CLUSTER SOCKET`: the real holder, which kills itself at the N-th question once
the file ARMED says `N before` or `N after`: before the engine is asked, or before its answer is told.

What it stops at is written to ARMED.told.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path

from agent_farm.engine import holder
from agent_farm.engine.holder_words import Question, Said


class _Killed(holder.Holder):
    seen = 0
    counting = threading.Lock()

    def _said(self, asked: Question, connection: socket.socket) -> Said:
        with self.counting:
            armed = ARMED.read_text().split() if ARMED.exists() else None
            self.seen = self.seen + 1 if armed else 0
            ends, seen = armed and self.seen == int(armed[0]), self.seen
        if ends and armed and armed[1] == "before":
            self._end(seen, asked)
        said = super()._said(asked, connection)
        if ends:
            self._end(seen, asked)
        return said

    def _end(self, seen: int, asked: Question) -> None:
        ARMED.with_suffix(".told").write_text(f"before step {seen}: {asked.do} {asked.data[:300]!r}\n")
        ARMED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    ARMED = Path(sys.argv[1])
    holder.Holder = _Killed  # type: ignore[misc]
    sys.exit(holder.main(*sys.argv[-2:]))

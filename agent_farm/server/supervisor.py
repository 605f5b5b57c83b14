"""Keeps the farm's server running: holds its sockets and its lock, and restarts it after a crash.

Run as a file: `supervisor.py FD,FD,… argv…`; uses only the standard library. Callers that connect while the
server is down wait in the sockets' queue. It ends when the server ends well, when it is asked to (SIGTERM),
or when the server crashes again and again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import FrameType

MOST_CRASHES = 5
WITHIN_SECONDS = 60.0
RESTART_SECONDS = 0.5


def main(argv: list[str]) -> int:
    descriptors = [int(word) for word in argv[0].split(",")]
    asked: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if child is not None and child.returncode is None:
            os.kill(child.pid, signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    crashes: list[float] = []
    while not asked:
        child = subprocess.Popen(argv[1:], pass_fds=descriptors, start_new_session=True)
        if asked:  # the signal came before there was a child to pass it on to
            child.terminate()
        status = child.wait()
        if asked or status == 0:
            return 0
        crashes = [at for at in crashes if at > time.monotonic() - WITHIN_SECONDS] + [time.monotonic()]
        if len(crashes) >= MOST_CRASHES:
            say(f"the server ended with {status}, {len(crashes)} times in {WITHIN_SECONDS:g} s: giving up")
            return 1
        say(f"the server ended with {status}: starting it again")
        time.sleep(RESTART_SECONDS * len(crashes))
    return 0


def say(text: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    os.write(2, f"{stamp} supervisor {os.getpid()}: {text}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

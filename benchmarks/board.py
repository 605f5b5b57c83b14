"""The board with 200 demo builders, 20 of them printing: first paint, key to screen, CPU at rest.

`BOARD_BUILDERS=50` asks for another number. The board runs on a terminal of its own, whose other end is here.
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from benchmarks.stage import AF, Rows, Stage, ratio, spawn_idle, spread, stage, turns

BUILDERS = int(os.environ.get("BOARD_BUILDERS", "200"))
PRINTING = 20
PRINT_SECONDS = 0.1
KEYS = 40
AT_REST_SECONDS = 20.0
ROWS, COLUMNS = 50, 200
POINTER = "›".encode()


class Terminal:
    """`af board` on a pseudo-terminal."""

    def __init__(self, on: Stage) -> None:
        self.side, inner = pty.openpty()
        termios.tcsetwinsize(inner, (ROWS, COLUMNS))
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [AF, "board"],
            cwd=on.repository,
            env={**on.env, "COLORTERM": "truecolor", "AF_SERVER": "off"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)

    def until(self, text: bytes, seconds: float = 60.0) -> float:
        """When it has written that."""
        seen, deadline = b"", time.perf_counter() + seconds
        while text not in seen:
            if time.perf_counter() > deadline:
                sys.exit(f"The board has not written {text!r}; it wrote {seen[-2000:]!r}")
            if select.select([self.side], [], [], 0.5)[0]:
                seen += os.read(self.side, 1 << 16)
        return time.perf_counter()

    def drain(self, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            if select.select([self.side], [], [], left)[0]:
                os.read(self.side, 1 << 16)

    def press(self, key: bytes) -> float:
        """Seconds until the cursor has moved on the screen."""
        self.drain(0.15)
        begin = time.perf_counter()
        os.write(self.side, key)
        return self.until(POINTER) - begin

    def close(self) -> None:
        os.write(self.side, b"q")
        with suppress(OSError):
            self.drain(1.0)
        self.process.wait(30)
        os.close(self.side)


def main() -> Rows:
    with stage() as on:
        spawn_idle(on, BUILDERS)
        python = [sys.executable, "-c", "import textual.app"]
        found: list[tuple[float, float]] = []
        ways = {"textual": lambda: on.run(*python), "board": lambda: found.append(_paint(on))}
        textual = turns(ways, rounds=6)["textual"]
        paints, lists = zip(*found[1:], strict=True)
        terminal = Terminal(on)
        terminal.until(b"idle")
        terminal.drain(20.0)  # git's state of all worktrees is read meanwhile
        rest = _at_rest(terminal)
        with _printing(on):
            delays = [terminal.press(b"k" if turn % 2 else b"j") for turn in range(KEYS)]
            busy = _at_rest(terminal)
        terminal.close()
    yield "python -c 'import textual.app', s", spread(textual)
    yield "first paint / that", ratio(paints, textual)
    yield f"all {BUILDERS} builders / that", ratio(lists, textual)
    yield "at rest: % of a core", round(rest * 100, 2)
    yield f"{PRINTING} printing: key to screen, s", spread(delays)
    yield f"{PRINTING} printing: key to screen, worst, s", round(max(delays), 3)
    yield f"{PRINTING} printing: % of a core", round(busy * 100, 2)


def _paint(on: Stage) -> tuple[float, float]:
    terminal = Terminal(on)
    painted = terminal.until(b"quit") - terminal.began
    listed = terminal.until(b"idle") - terminal.began
    terminal.close()
    return painted, listed


def _at_rest(terminal: Terminal) -> float:
    process = psutil.Process(terminal.process.pid)

    def spent() -> float:
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)

    before, began = spent(), time.monotonic()
    terminal.drain(AT_REST_SECONDS)
    return (spent() - before) / (time.monotonic() - began)


@contextmanager
def _printing(on: Stage) -> Iterator[None]:
    """Lines on the terminals of some builders, the first ones of the list among them."""
    ttys = on.run("tmux", "list-panes", "-a", "-F", "#{pane_tty}").splitlines()[:PRINTING]
    ended = threading.Event()

    def write() -> None:
        files = [os.open(tty, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK) for tty in ttys]
        number = 0
        while not ended.wait(PRINT_SECONDS):
            number += 1
            for file in files:
                with suppress(BlockingIOError):
                    os.write(file, f"line {number} of what it prints\r\n".encode())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

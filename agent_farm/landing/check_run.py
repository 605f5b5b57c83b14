"""Runs a command in a trial: leaves no process behind, and limits the size of its log."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct, field

from agent_farm.farm.builds import build_slot
from agent_farm.farm.declared_checks import Check
from agent_farm.farm.farm import Farm
from agent_farm.runtimes.environment import allowed_environment

if TYPE_CHECKING:
    from agent_farm.runtimes.process import Ended

HALF = 512 * 1024  # bytes that a log keeps of the beginning, and again of the end
_LONGEST_LINE = 8192
# Variables of whoever asked for the check: what it says about a tree must not depend on them.
_OF_THE_ASKER = ("AF_", "TMUX", "TRACEPARENT")

Tell = Callable[[str], None]


def run_check(
    farm: Farm, check: Check, place: Path, log: Path, *, held: int, run: str, tell: Tell | None
) -> Ended:
    """Run the check to its end, its time limit or Ctrl-C; no process of it outlives that, or this process.

    Its standard input is empty; its output goes to `log` and, line by line, to `tell`. `held` is the
    descriptor of a lock that it keeps as long as it lives, `run` the start of the builder whose work it is.
    """
    import asyncio  # loaded only here, with everything that drives a process

    from agent_farm.runtimes.process import Command, held_by_guards, run_guarded

    argv = ("/bin/sh", "-c", 'exec 2>&1; exec /bin/sh -c "$1"', "sh", check.command)
    env = _environment(farm.settings.items("env.pass"))
    with _new_file(log) as file, held_by_guards(held):
        kept = _BoundedLog(file)

        def hear(line: str) -> None:
            kept.write(line)
            if tell is not None:
                tell(line.rstrip("\r\n"))

        try:
            # held here, not by the check: the time it waits is none of the check's
            with build_slot(farm, run, waits=lambda: hear("queued for build\n")) as words:
                command = Command((*words, *argv), place, env, timeout=check.seconds)
                return asyncio.run(run_guarded(command, hear))
        finally:
            kept.close()


def _new_file(path: Path) -> BinaryIO:
    """Create the file anew: a link or pipe in its place is not written to."""
    path.unlink(missing_ok=True)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _environment(declared: tuple[str, ...]) -> dict[str, str]:
    env = allowed_environment(os.environ, declared=declared)
    return {
        name: value for name, value in env.items() if name in declared or not name.startswith(_OF_THE_ASKER)
    }


class _BoundedLog(Struct):
    """Writes the beginning as it comes; of what follows, keeps only the end."""

    file: BinaryIO
    _written: int = 0
    _left_out: int = 0
    _waiting: int = 0
    _tail: deque[bytes] = field(default_factory=deque)

    def write(self, line: str) -> None:
        data = line.encode("utf-8", "replace")
        if len(data) > _LONGEST_LINE:
            data = data[:_LONGEST_LINE] + b" (the line goes on)\n"
        if self._written + len(data) <= HALF and not self._tail:
            self._written += len(data)
            self.file.write(data)
            self.file.flush()
            return
        self._tail.append(data)
        self._waiting += len(data)
        while self._waiting > HALF:
            self._waiting -= len(self._tail.popleft())
            self._left_out += 1

    def close(self) -> None:
        if self._left_out:
            self.file.write(f"({self._left_out} lines are left out)\n".encode())
        self.file.writelines(self._tail)

"""Reports events as real CLIs do: as lines of JSON, or to a command that gets the payload as JSON."""

from __future__ import annotations

import os
import select
import sys
import time

from agent_farm.lean import dumps, signal, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HOOK_SECONDS = 10.0
_CHUNK = 1 << 16
_HEARD_BY_PROGRAMS = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores these, programs should not


def emit(line: Mapping[str, object]) -> None:
    """Print one event for whoever reads our standard output line by line."""
    sys.stdout.write(dumps(line) + "\n")
    sys.stdout.flush()


class Hooks:
    def __init__(self, argv: tuple[str, ...], conversation: str, cwd: str) -> None:
        self._argv = argv
        self._common = {"session_id": conversation, "cwd": cwd}

    def report(self, event: str, **payload: object) -> None:
        """A hook that fails or hangs must not stop the agent."""
        if not self._argv:
            return
        text = dumps({"hook_event_name": event, **self._common, **payload})
        with suppress(OSError):
            _run(self._argv, text.encode())


def _run(argv: tuple[str, ...], content: bytes) -> None:
    """Does without subprocess, which takes as long to load as the hook takes to run."""
    given, giving = os.pipe()
    hearing, heard = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, given, 0),
        (os.POSIX_SPAWN_DUP2, heard, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsigdef=_HEARD_BY_PROGRAMS)
    except OSError:
        os.close(giving)
        os.close(hearing)
        raise
    finally:
        os.close(given)
        os.close(heard)
    try:
        if not _fed(giving, hearing, content):
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(hearing)
        os.waitpid(pid, 0)


def _fed(giving: int, hearing: int, content: bytes) -> bool:
    """Whether the program closed its output, as it does when it ends, in time. Closes `giving`."""
    os.set_blocking(giving, False)
    deadline, writing = time.monotonic() + _HOOK_SECONDS, [giving]
    while (left := deadline - time.monotonic()) > 0:
        if writing and not content:
            os.close(writing.pop())
        readable, writable, _ = select.select([hearing], writing, [], left)
        if writable:
            try:
                content = content[os.write(giving, content) :]
            except BrokenPipeError:
                content = b""
        if readable and not os.read(hearing, _CHUNK):
            break
    for descriptor in writing:
        os.close(descriptor)
    return left > 0

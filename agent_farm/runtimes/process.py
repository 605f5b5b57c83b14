"""Running a CLI to its end: lines in, lines out, limits kept, and the whole process group gone afterwards."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

GUARD = Path(__file__).with_name("guard.py")
GRACE_SECONDS = 3.0
_STDERR_KEPT = 16_384
_LINE_LIMIT = 1 << 26

OnLine = Callable[[str], "str | None"]
_HELD: ContextVar[tuple[int, ...]] = ContextVar("descriptors held by guards", default=())


@dataclass(frozen=True, slots=True)
class Command:
    """`given` goes to its standard input; `scratch` is removed should the starter die before it can."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    given: bytes = b""
    scratch: Path | None = None
    timeout: float | None = None
    grace: float = GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class Ended:
    """`stopped` is the reason that the reader of its lines gave, `timed_out` says the time was over."""

    exit_code: int | None = None
    signal: str | None = None
    stderr: str = ""
    timed_out: bool = False
    stopped: str | None = None
    cannot_start: str | None = None


@contextmanager
def held_by_guards(descriptor: int) -> Iterator[None]:
    """Runs that start inside hold the descriptor until their last process has ended, should we die before."""
    token = _HELD.set((*_HELD.get(), descriptor))
    try:
        yield
    finally:
        _HELD.reset(token)


async def run_guarded(command: Command, on_line: OnLine) -> Ended:
    """Hand every line of output to `on_line`; a reason it returns ends the process, as does `timeout`.

    However this ends, by cancellation or by the death of this process too, no process of the command is left.
    """
    import asyncio

    starting = asyncio.create_task(_Guard.start(command))
    try:
        guard = await asyncio.shield(starting)  # cut short, it could leave a guard that nobody knows of
    except OSError as error:
        return Ended(cannot_start=str(error))
    except asyncio.CancelledError:
        await asyncio.shield(_close_started(starting))
        raise
    stderr = asyncio.create_task(_tail(guard.process.stderr))
    feeder = asyncio.create_task(_feed(guard.process.stdin, command.given))
    stopped, timed_out = None, False
    try:
        async with asyncio.timeout(command.timeout):
            stopped = await _read_lines(guard.process.stdout, on_line)
    except TimeoutError:
        timed_out = True
    finally:
        feeder.cancel()
        await asyncio.shield(guard.close())
    said = await stderr
    return guard.ended(said, timed_out=timed_out, stopped=stopped)


class _Guard:
    """A running guard.py, its lifeline, and what it said about its child."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int, status: int, grace: float) -> None:
        self.process = process
        self._lifeline, self._status = lifeline, status
        self._grace = grace
        self._words: dict[str, str] = {}

    @classmethod
    async def start(cls, command: Command) -> _Guard:
        import asyncio

        lifeline_end, lifeline = os.pipe()
        status, status_end = os.pipe()
        words = (str(lifeline_end), str(status_end), str(command.grace), str(command.scratch or ""))
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(GUARD), *words, *command.argv),
                cwd=command.cwd,
                env=dict(command.env),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(lifeline_end, status_end, *_HELD.get()),
                start_new_session=True,
                limit=_LINE_LIMIT,
            )
        except OSError:
            os.close(lifeline)
            os.close(status)
            raise
        finally:
            os.close(lifeline_end)
            os.close(status_end)
        return cls(process, lifeline, status, command.grace)

    async def close(self) -> None:
        """Cut the lifeline and wait for the guard to end the group; a killed guard's work is done here."""
        import asyncio

        os.close(self._lifeline)
        drain = asyncio.create_task(_drain(self.process.stdout))  # or its end would not be noticed
        try:
            async with asyncio.timeout(self._grace * 2 + 12):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        self._words = _read_status(self._status)
        if "group" in self._words and "ended" not in self._words:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(int(self._words["group"]), signal.SIGKILL)
        await drain

    def ended(self, stderr: str, *, timed_out: bool, stopped: str | None) -> Ended:
        word = self._words.get("ended", "-9")
        code = int(word) if word != "None" else -9
        return Ended(
            exit_code=code if code >= 0 else None,
            signal=signal.Signals(-code).name if code < 0 else None,
            stderr=stderr,
            timed_out=timed_out,
            stopped=stopped,
            cannot_start=self._words.get("failed"),
        )


async def _close_started(starting: asyncio.Task[_Guard]) -> None:
    with suppress(OSError):
        await (await starting).close()


def _read_status(descriptor: int) -> dict[str, str]:
    text = b""
    with suppress(OSError):
        while part := os.read(descriptor, 4096):
            text += part
    os.close(descriptor)
    pairs = (line.partition(" ") for line in text.decode(errors="replace").splitlines())
    return {word: rest for word, _, rest in pairs}


async def _read_lines(stream: asyncio.StreamReader | None, on_line: OnLine) -> str | None:
    assert stream is not None
    while line := await stream.readline():
        if (reason := on_line(line.decode("utf-8", "replace").rstrip("\n"))) is not None:
            return reason
    return None


async def _drain(stream: asyncio.StreamReader | None) -> None:
    assert stream is not None
    while await stream.read(65536):
        pass


async def _feed(stream: asyncio.StreamWriter | None, given: bytes) -> None:
    assert stream is not None
    with suppress(ConnectionError):
        stream.write(given)
        await stream.drain()
    stream.close()


async def _tail(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    kept = b""
    while part := await stream.read(4096):
        kept = (kept + part)[-_STDERR_KEPT:]
    return kept.decode("utf-8", "replace")

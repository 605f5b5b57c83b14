"""Runs a CLI to its end: feeds it, hands on its lines, keeps limits, leaves none of its processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from agent_farm.errors import UsageError
from agent_farm.uncancelled import to_its_end

GUARD = Path(__file__).with_name("guard.py")
GRACE_SECONDS = 3.0
_STDERR_KEPT = 16_384
_LINE_LIMIT = 1 << 26
_PIPE_BYTES = 1 << 19
TOO_LONG = "(a line that is too long to be read)\n"  # given to `on_line` instead of such a line
_LEFT_SECONDS = 2.0  # how long to wait for output from processes that are not ours

OnLine = Callable[[str], "str | None"]
_HELD: ContextVar[tuple[int, ...]] = ContextVar("descriptors held by guards", default=())


@dataclass(frozen=True, slots=True)
class Command:
    """`given` goes to its standard input; `scratch` is removed even if the starter dies first."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    given: bytes = b""
    scratch: Path | None = None
    timeout: float | None = None
    grace: float = GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class Ended:
    """`stopped` is the reason that `on_line` gave, `timed_out` means that the time was over."""

    exit_code: int | None = None
    signal: str | None = None
    stderr: str = ""
    timed_out: bool = False
    stopped: str | None = None
    cannot_start: str | None = None


@contextmanager
def held_by_guards(descriptor: int) -> Iterator[None]:
    """Runs started inside hold the descriptor until their last process has ended, even if we die first."""
    token = _HELD.set((*_HELD.get(), descriptor))
    try:
        yield
    finally:
        _HELD.reset(token)


async def run_guarded(
    command: Command, on_line: OnLine, on_error: Callable[[str], None] | None = None
) -> Ended:
    """Hand every line of output, with its line end, to `on_line`; if that returns a reason, the process is
    ended, as after `timeout`. `on_error` gets the lines of standard error.

    However this ends, even by cancellation or the death of this process, no process of the command is left.
    """
    starting = asyncio.create_task(_Guard.start(command, on_error))
    try:
        guard = await asyncio.shield(starting)  # otherwise a guard could be left that nobody knows about
    except OSError as error:
        return Ended(cannot_start=str(error))
    except asyncio.CancelledError:
        await to_its_end(_close_started(starting))
        raise
    feeder = asyncio.create_task(_feed(guard.process.stdin, command.given))
    stopped, timed_out = None, False
    try:
        async with asyncio.timeout(command.timeout):
            stopped = await guard.read(on_line)
    except TimeoutError:
        timed_out = True
    finally:
        feeder.cancel()
        await to_its_end(guard.close())
    return guard.ended(timed_out=timed_out, stopped=stopped)


class _Guard:
    """A running guard.py, its lifeline, and what it reported about its child."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        lifeline: int,
        pipes: tuple[_Pipe, ...],
        grace: float,
        on_error: Callable[[str], None] | None,
    ) -> None:
        self.process = process
        self.stdout, stderr, status = self._pipes = pipes
        self._lifeline = lifeline
        self._grace = grace
        self._stderr = asyncio.create_task(_tail(stderr.reader, on_error))
        # ends with the guard: both of its processes hold the other end, and nobody else does
        self._status = asyncio.create_task(_tail(status.reader))
        self._reading: asyncio.Task[str | None] | None = None
        self._words: dict[str, str] = {}
        self._killed = False

    @classmethod
    async def start(cls, command: Command, on_error: Callable[[str], None] | None) -> _Guard:
        with ExitStack() as theirs, ExitStack() as ours:
            lifeline_end, lifeline = os.pipe()
            theirs.callback(os.close, lifeline_end)
            ours.callback(os.close, lifeline)
            pipes = list[_Pipe]()
            for _ in range(3):
                pipes.append(await _Pipe.open())
                theirs.callback(os.close, pipes[-1].far_end)
                ours.callback(pipes[-1].close)
            stdout, stderr, status = pipes
            _widen(stdout.far_end)
            words = (str(lifeline_end), str(status.far_end), str(command.grace), str(command.scratch or ""))
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(GUARD), *words, *command.argv),
                    cwd=command.cwd,
                    env=dict(command.env),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=stdout.far_end,
                    stderr=stderr.far_end,
                    pass_fds=(lifeline_end, status.far_end, *_HELD.get()),
                    start_new_session=True,
                )
            except ValueError as error:  # NUL in an argument or in the environment
                raise UsageError("A word of its command or environment contains NUL") from error
            ours.pop_all()
        return cls(process, lifeline, (stdout, stderr, status), command.grace, on_error)

    async def read(self, on_line: OnLine) -> str | None:
        """Until the output ends, or nothing more comes after the whole guard was killed."""
        lines = _Lines(self.stdout.reader, on_line)
        self._reading = asyncio.create_task(lines.read())
        await asyncio.wait((self._reading, self._status), return_when=asyncio.FIRST_COMPLETED)
        heard = -1
        while not self._reading.done() and heard < lines.heard:
            heard = lines.heard
            await asyncio.wait((self._reading,), timeout=_LEFT_SECONDS)
        return self._reading.result() if self._reading.done() else None

    async def close(self) -> None:
        """Close the lifeline and wait for the guard to end the group; a killed guard's work is done here."""
        os.close(self._lifeline)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait((self._reading,))
        drain = asyncio.create_task(_drain(self.stdout.reader))  # a full pipe would keep the child alive
        _abort(self.process.stdin)
        try:
            async with asyncio.timeout(self._grace * 2 + 12):
                await self.process.wait()
                self._killed = (self.process.returncode or 0) < 0
                await asyncio.shield(self._status)  # one of its two processes may be alive
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # both processes
        await asyncio.wait((self._status,), timeout=_LEFT_SECONDS)
        self._words = _pairs(self._status.result() if self._status.done() else "")
        if "group" in self._words and "ended" not in self._words:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(int(self._words["group"]), signal.SIGKILL)
        await asyncio.wait((drain, self._stderr), timeout=_LEFT_SECONDS)
        for pipe in self._pipes:  # somebody else may hold the other end
            pipe.close()
        await asyncio.wait((drain, self._stderr, self._status, asyncio.ensure_future(self.process.wait())))

    def ended(self, *, timed_out: bool, stopped: str | None) -> Ended:
        word = "-9" if self._killed else self._words.get("ended", "-9")
        code = int(word) if word != "None" else -9
        return Ended(
            exit_code=code if code >= 0 else None,
            signal=signal.Signals(-code).name if code < 0 else None,
            stderr=self._stderr.result(),
            timed_out=timed_out,
            stopped=stopped,
            cannot_start=self._words.get("failed"),
        )


class _Pipe:
    """A pipe that a child writes to; unlike asyncio's, it can be closed while others hold its end."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport, far_end: int) -> None:
        self.reader, self.far_end = reader, far_end
        self._transport = transport

    @classmethod
    async def open(cls) -> _Pipe:
        near_end, far_end = os.pipe()
        reader = asyncio.StreamReader(limit=_LINE_LIMIT)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), FileIO(near_end)
        )
        return cls(reader, transport, far_end)

    def close(self) -> None:
        self._transport.close()


def _widen(pipe: int) -> None:
    """A CLI on Node.js that exits loses what the pipe did not take by then, and its answer comes last."""
    with suppress(OSError, AttributeError):  # Linux alone can, and a user's share of such memory is bounded
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


async def _close_started(starting: asyncio.Task[_Guard]) -> None:
    with suppress(OSError):
        await (await starting).close()


def _pairs(text: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in text.splitlines())
    return {word: rest for word, _, rest in lines}


class _Lines:
    """Hands on the lines of a stream, up to one that gives a reason to stop; `heard` counts them."""

    def __init__(self, stream: asyncio.StreamReader, on_line: OnLine) -> None:
        self._stream, self._on_line = stream, on_line
        self.heard = 0

    async def read(self) -> str | None:
        while line := await self._line():
            self.heard += 1
            if (reason := self._on_line(line.decode("utf-8", "replace"))) is not None:
                return reason
        return None

    async def _line(self) -> bytes:
        try:
            return await self._stream.readline()
        except ValueError:
            return TOO_LONG.encode()


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass


async def _feed(stream: asyncio.StreamWriter | None, given: bytes) -> None:
    assert stream is not None
    with suppress(ConnectionError):
        stream.write(given)
        await stream.drain()
    stream.close()


def _abort(stream: asyncio.StreamWriter | None) -> None:
    """Drops output that has not been read yet."""
    assert stream is not None
    if not stream.is_closing() or stream.transport.get_write_buffer_size():
        stream.transport.abort()


async def _tail(stream: asyncio.StreamReader, on_line: Callable[[str], None] | None = None) -> str:
    kept = rest = b""
    while part := await stream.read(4096):
        kept = (kept + part)[-_STDERR_KEPT:]
        if on_line:
            *lines, rest = (rest[-_STDERR_KEPT:] + part).split(b"\n")
            for line in lines:
                on_line(line.decode("utf-8", "replace"))
    if on_line and rest:
        on_line(rest.decode("utf-8", "replace"))
    return kept.decode("utf-8", "replace")

"""PtyClient: a program on a pseudo-terminal, read and written by an event loop."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

_CHUNK = 65536
_END_SECONDS = 3.0


@dataclass(slots=True)
class PtyClient:
    process: subprocess.Popen[bytes]
    master: int
    _closed: bool = False

    async def read(self) -> bytes:
        """What it wrote; empty once it has ended. Nothing is read ahead, so a slow reader slows it down."""
        loop = asyncio.get_running_loop()
        while not self._closed:
            await _until(self.master, loop.add_reader, loop.remove_reader)
            try:
                return os.read(self.master, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:  # EIO: nobody has the other side open
                break
        return b""

    async def write(self, data: bytes) -> None:
        view, loop = memoryview(data), asyncio.get_running_loop()
        while view and not self._closed:
            try:
                view = view[os.write(self.master, view) :]
            except BlockingIOError:
                await _until(self.master, loop.add_writer, loop.remove_writer)
            except OSError:
                return

    def resize(self, columns: int, rows: int) -> None:
        if self._closed:
            return
        _set_size(self.master, columns, rows)
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGWINCH)  # it has no controlling terminal

    async def close(self) -> None:
        """Returns when the program has ended; it is asked to, then killed."""
        if self._closed:
            return
        self._closed = True
        with suppress(ProcessLookupError):
            self.process.terminate()
        os.close(self.master)
        await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_on_pty(argv: Sequence[str], env: Mapping[str, str], *, columns: int, rows: int) -> PtyClient:
    master, slave = os.openpty()
    try:
        _set_size(slave, columns, rows)
        os.set_blocking(master, False)
        process = subprocess.Popen(
            argv, env=dict(env), stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd="/"
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return PtyClient(process, master)


def _set_size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def _until(descriptor: int, add: Callable[..., None], remove: Callable[[int], object]) -> None:
    """Wait until it is ready, according to the loop's `add_reader` or `add_writer`."""
    ready = asyncio.Event()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)

"""A program on a terminal of its own, for what has to be seen without tmux."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_farm.launch import Launch
from tests.waiting import wait_until


class OnPty:
    def __init__(self, argv: tuple[str, ...], cwd: Path, env: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self._output = bytearray()
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        with suppress(OSError):
            while data := os.read(self._master, 65536):
                self._output += data

    @property
    def text(self) -> str:
        return self._output.decode("utf-8", "replace")

    def type(self, keys: bytes) -> None:
        while keys:
            keys = keys[os.write(self._master, keys[:1024]) :]

    def paste(self, text: str) -> None:
        self.type(b"\x1b[200~" + text.encode().replace(b"\n", b"\r") + b"\x1b[201~")

    def wait_for(self, text: str, *, timeout: float = 60, count: int = 1) -> str:
        def seen() -> bool:
            return self.text.count(text) >= count

        try:
            wait_until(seen, timeout=timeout, what=repr(text))
        except AssertionError as error:
            raise AssertionError(f"{error} in {self.text[-1000:]!r}") from None
        return self.text

    def end(self) -> int:
        return self.process.wait(timeout=120)


@contextmanager
def on_pty(launch: Launch) -> Iterator[OnPty]:
    write_launch_files(launch)
    running = OnPty(launch.argv, launch.cwd, dict(launch.env))
    try:
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait()


def write_launch_files(launch: Launch) -> None:
    for file in launch.files:
        file.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.path.write_text(file.content)
        file.path.chmod(file.mode)

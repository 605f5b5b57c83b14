"""A Ray cluster for commands that do not import Ray: they ask its holder, which is started if necessary."""

from __future__ import annotations

import hashlib
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import file_lock
from agent_farm.engine.certificates import HEAD_SECONDS, require_head
from agent_farm.engine.contract import Room
from agent_farm.engine.holder_words import Question, Said, hear, require_own_peer, say
from agent_farm.engine.ray_files import ray_environment, require_ray, run_directory, running_node
from agent_farm.errors import AgentFarmError, LockTaken, Overdue, Unreachable, error_of

_START_SECONDS = 90.0
_SECONDS = 60.0
_LATE_SECONDS = 90.0
_HURRY_SECONDS = 10.0  # a caller with less time gets the previous answer, and others keep asking
_HINT = "af fleet status"


class HeldEngine(Struct, frozen=True):
    """The engine behind `cluster`, HOST:PORT; `tls` is the directory of its certificates, or ""."""

    cluster: str
    tls: str = ""

    def capacity(self) -> tuple[Room, ...]:
        return self._ask(Question("capacity")).rooms

    def place(self, name: str, host: str | None, avoided: Collection[str] = ()) -> str:
        return self._ask(Question("place", name, host, tuple(avoided))).host

    def release(self, name: str) -> None:
        self._ask(Question("release", name))

    def drain(self, name: str, host: str) -> None:
        self._ask(Question("drain", name, host))

    def undrain(self, name: str, host: str) -> None:
        self._ask(Question("undrain", name, host))

    def places(self) -> dict[str, str | None]:
        return self._ask(Question("places")).places

    def call(self, host: str, data: bytes, *, seconds: float) -> Iterator[bytes]:
        asked = Question("call", host=host, data=data, seconds=seconds)
        if seconds < _HURRY_SECONDS:
            return iter(self._ask(asked, 2 * seconds + 1, start_seconds=seconds).lines)
        return iter(self._ask(asked, seconds + _LATE_SECONDS).lines)

    def end(self) -> None:
        """End its holder, if there is one."""
        with suppress(OSError, EOFError), self._connected() as connection:
            connection.settimeout(_SECONDS)
            say(connection, Question("end"))
            hear(connection, Said)
        with suppress(AgentFarmError), file_lock(self._socket.with_suffix(".lock"), wait=_SECONDS):
            pass

    def _own_address(self) -> str | None:
        """Ray's driver has the address of the cluster's node on this machine: None, where `af` did not start
        that one."""
        node = running_node()
        return node.host or None if node and node.cluster == self.cluster else None

    @property
    def _socket(self) -> Path:
        name = hashlib.sha256(f"{self.cluster}\0{self.tls}".encode()).hexdigest()[:12]
        return run_directory() / f"{name}.sock"

    def _ask(
        self, asked: Question, seconds: float = _SECONDS, *, start_seconds: float = _START_SECONDS
    ) -> Said:
        try:
            with self._reached(start_seconds) as connection:
                connection.settimeout(seconds)
                say(connection, asked)
                said = hear(connection, Said)
        except (OSError, EOFError, LockTaken) as error:
            if isinstance(error, (TimeoutError, LockTaken)):
                raise Overdue(f"The cluster at {self.cluster} has not answered", hint=_HINT) from error
            what = f"The connection to {self.cluster} has ended"
            raise Unreachable(what, why=str(error) or None, hint=_HINT) from error
        if said.problem is not None:
            found = said.problem
            problem = error_of(found.code, found.what, why=found.why, hint=found.hint, evidence=())
            if isinstance(problem, Unreachable):
                problem.began = found.began
            raise problem
        return said

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self._socket))
            require_own_peer(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _reached(self, seconds: float) -> socket.socket:
        until = time.monotonic() + seconds
        with suppress(ConnectionRefusedError, FileNotFoundError):
            return self._connected()
        with file_lock(self._socket.with_suffix(".start"), wait=seconds):
            with suppress(ConnectionRefusedError, FileNotFoundError):
                return self._connected()  # somebody else was faster
            try:
                self._start(until)
            except Unreachable as error:
                error.began = False
                raise
        return self._connected()

    def _start(self, until: float) -> None:
        require_ray()
        require_head(self.cluster, self.tls, min(HEAD_SECONDS, _left(until)), self._own_address())
        log = self._socket.with_suffix(".log")
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "agent_farm.engine.holder", self.cluster, str(self._socket)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=descriptor,
                cwd="/",
                env={**os.environ, **ray_environment(self.tls)},
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        assert process.stdout
        with process.stdout as said:
            is_late = not select.select([said], [], [], _left(until))[0]
            if not is_late and said.readline() == b"ready\n":
                process.returncode = 0  # it outlives this process, which need not wait for it
                return
        process.kill()
        process.wait()
        lines = [line for line in log.read_bytes().decode("utf-8", "replace").splitlines() if line.strip()]
        raise (Overdue if is_late else Unreachable)(
            f"The cluster at {self.cluster} cannot be reached",
            why=lines[-1].strip()[:300] if lines else "It has not answered in time." if is_late else None,
            hint=_HINT,
        )


def _left(until: float) -> float:
    return max(0.05, until - time.monotonic())

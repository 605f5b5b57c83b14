"""Each `af` of a test is a fork of a process that has imported it: a fifth of what a start takes.

It is a process of its own all the same, with the environment, the directory and the streams it is given. One
thing is not as users have it: `af status` gives git what it takes on a busy machine, and not half a second.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

# What an interpreter reads when it starts: where one of these is another, `af` is started and not forked.
READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ")
GIT_MAY_TAKE = 20.0  # seconds
ROOMS = ("cli", "operations", "farm", "landing", "git", "tmux", "builders")


class Forks:
    """The process that is forked, in this environment, from here on until `end`. `python` is what its forks
    take for their interpreter."""

    def __init__(self, environment: Mapping[str, str], python: str | Path = sys.executable) -> None:
        self._begun_with = _read_at_start(environment)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [python, "-m", "tests.forking", str(theirs.fileno())],
                cwd=Path(__file__).parents[1],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def end(self) -> None:
        self._channel.close()
        self._process.wait(timeout=120)

    def run(
        self,
        args: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        input: str | None,
        timeout: float,
        new_session: bool,
        fork: bool,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` would; a run that takes too long is killed."""
        if not fork or _read_at_start(env) != self._begun_with:
            return subprocess.run(
                [sys.executable, "-m", "agent_farm", *args],
                cwd=cwd,
                input=input,
                stdin=subprocess.DEVNULL if input is None else None,
                env=env,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
                start_new_session=new_session,
            )
        order = {"args": args, "cwd": str(cwd), "env": dict(env), "new_session": new_session}
        ours, theirs = socket.socketpair()
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        with ours, theirs, ours.makefile("rb") as answer:
            _hand_over(self._channel, _stdin(input), out_end, err_end, theirs.detach())
            ours.sendall(json.dumps(order).encode() + b"\n")
            pid = int(answer.readline())
            told = _read_all([out, err], pid, timeout)
            return subprocess.CompletedProcess(["af", *args], int(answer.readline()), *told)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def _hand_over(channel: socket.socket, *descriptors: int) -> None:
    socket.send_fds(channel, [b"."], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def _stdin(text: str | None) -> int:
    if text is None:
        return os.open(os.devnull, os.O_RDONLY)
    file = os.memfd_create("stdin")  # a pipe holds 64 kB while nobody reads
    with os.fdopen(os.dup(file), "wb") as writing:
        writing.write(text.encode())
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _read_all(pipes: list[int], pid: int, timeout: float) -> list[str]:
    """What comes through each until nobody has it open any more."""
    deadline = time.monotonic() + timeout
    read = dict.fromkeys(pipes, b"")
    is_open = list(pipes)
    try:
        while is_open:
            ready, _, _ = select.select(is_open, [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(f"af, process {pid}", timeout, *read.values())
            for pipe in ready:
                some = os.read(pipe, 1 << 16)
                read[pipe] += some
                if not some:
                    is_open.remove(pipe)
    finally:
        for pipe in pipes:
            os.close(pipe)
    return [told.decode().replace("\r\n", "\n") for told in read.values()]


def serve(channel: socket.socket) -> None:
    """Fork for each message, and tell how each fork ends; at the end of the channel, end."""
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready in select.select([channel.fileno(), *running], [], [])[0]:
            if ready in running:
                pid, reply = running.pop(ready)
                os.close(ready)
                with reply, suppress(OSError):  # who asked may be gone
                    reply.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                continue
            received, descriptors, _, _ = socket.recv_fds(channel, 1, 4)
            if not received:
                return
            *streams, reply_end = descriptors
            if (pid := os.fork()) == 0:
                channel.close()
                for other, (_, connection) in running.items():
                    os.close(other)
                    connection.close()
                _become_af(streams, socket.socket(fileno=reply_end))
            for descriptor in streams:
                os.close(descriptor)
            running[os.pidfd_open(pid)] = pid, socket.socket(fileno=reply_end)


def _become_af(streams: list[int], reply: socket.socket) -> NoReturn:
    with reply:
        order = json.loads(reply.makefile("rb").readline())
        reply.sendall(b"%d\n" % os.getpid())
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if order["new_session"]:
        os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    from agent_farm.cli.main import main

    try:
        main(order["args"])
    except SystemExit as end:
        _end(end.code)


def _end(code: str | int | None) -> NoReturn:
    """As an interpreter ends, but without taking its modules apart: that copies every page of the fork.

    A last flush that fails goes unnoticed.
    """
    assert isinstance(code, int)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _prepare() -> None:
    import importlib
    import pkgutil

    from agent_farm.farm import git_state

    git_state.BOUND_SECONDS = GIT_MAY_TAKE
    for room in ROOMS:
        package = importlib.import_module(f"agent_farm.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    _prepare()
    serve(socket.socket(fileno=int(sys.argv[1])))

"""Starts a server process whose port is open before it runs, so that nobody who comes early is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_farm.disk import file_lock, make_directory
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.own_process import python_argv
from agent_farm.ports import release_ports, reserve_ports
from agent_farm.server.address import (
    ServerAddress,
    ServerFiles,
    load_address,
    require_token,
    store_address,
)
from agent_farm.server.variables import declared_variables, server_environment

if TYPE_CHECKING:
    import socket

SUPERVISOR = Path(__file__).with_name("supervisor.py")
STOP_SECONDS = 15.0
LOG_LIMIT = 5_000_000
RESERVATION = "(server)"  # no builder can have this id


def start_server(root: Path, files: ServerFiles, environ: Mapping[str, str]) -> ServerAddress:
    make_directory(files.address.parent)
    require_token(files)
    turn_log(files.log)
    env = server_environment(environ, declared_variables(root))
    _wait_for_the_last_one(files)
    with ExitStack() as stack:
        sockets = open_port(root, files, stack)
        address = ServerAddress(sockets[0].getsockname()[1], files.token, time.time())
        store_address(files, address)  # whoever sees the lock held reads the right port
        lock = stack.enter_context(file_lock(files.lock, wait=2))
        process = _launch(root, files, lock, sockets, env)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(process.pid).encode(), 0)  # for whoever wants to end it before it is up
    return replace(address, supervisor=process.pid)


def _wait_for_the_last_one(files: ServerFiles) -> None:
    """A server that is ending still has the port."""
    try:
        with file_lock(files.lock, wait=STOP_SECONDS):
            pass
    except LockTaken as error:
        raise AgentFarmError("The last server has not ended yet", hint="af butler stop --now") from error


def open_port(root: Path, files: ServerFiles, until: ExitStack) -> list[socket.socket]:
    """The farm's port (the configured one, else the one it had before, else a reserved one), and the ports of
    butlers that have their own; `until` closes them, also where one of them is taken."""
    from agent_farm.sessions.butlers import load_all_butlers

    own, *others = load_all_butlers(root)
    sockets = [*map(until.enter_context, _listen(own.port) if own.port else _farms_port(root, files))]
    taken = {opened.getsockname()[1] for opened in sockets}
    for port in dict.fromkeys(one.port for one in others if one.port):
        if port not in taken:
            sockets += map(until.enter_context, _listen(port))
    return sockets


def _listen(configured: int) -> list[socket.socket]:
    from agent_farm.loopback import listen

    try:
        return listen(configured)
    except OSError as error:
        raise AgentFarmError(
            f"Port {configured} is taken",
            why=os.strerror(error.errno or 0),
            hint="af config get server.port",
        ) from error


def _farms_port(root: Path, files: ServerFiles) -> list[socket.socket]:
    from agent_farm.loopback import listen

    known = load_address(files)
    if known:
        with suppress(OSError):
            return listen(known.port)
    for _ in range(5):
        port = reserve_ports(root, RESERVATION, 1)[0]
        try:
            return listen(port)
        except OSError:
            release_ports(root, [RESERVATION])  # another program took it in the meantime
    return listen(0)


def _launch(
    root: Path, files: ServerFiles, lock: int, sockets: list[socket.socket], env: dict[str, str]
) -> subprocess.Popen[bytes]:
    descriptors = [lock, *(opened.fileno() for opened in sockets)]
    server = python_argv("agent_farm.server.serving", str(root), *map(str, descriptors))
    with open(files.log, "ab", opener=partial(os.open, mode=0o600)) as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SUPERVISOR), ",".join(map(str, descriptors)), *server],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=descriptors,
            start_new_session=True,
        )
    process.returncode = 0  # it outlives this process, which need not wait for it
    return process


def turn_log(log: Path) -> None:
    """Works while the log is being written: the writer appends to the emptied file."""
    with suppress(OSError):
        if log.stat().st_size > LOG_LIMIT:
            from shutil import copyfile

            copyfile(log, log.with_suffix(".log.1"))
            os.chmod(log.with_suffix(".log.1"), 0o600)
            os.truncate(log, 0)

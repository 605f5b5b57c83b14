"""Runs a program on another machine, over one connection that all calls share.

The user's own ssh configuration decides who they are there and which host keys are trusted. What runs there
is fixed words; everything that a user wrote goes over standard input.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_farm.asked_program import AskedProgram
from agent_farm.disk import make_directory
from agent_farm.errors import Overdue, ToolMissing, Unreachable
from agent_farm.launch import as_command
from agent_farm.own_files import require_own_directory
from agent_farm.ssh.ssh_url import Address

_CONNECT_SECONDS = 10
_BEGIN_SECONDS = 30.0
_KEEP_SECONDS = 600
_SOCKET_NAME = 58  # characters: 40 for %C, and what ssh appends while it creates the socket
_SOCKET_PATH = 107
_CANNOT_CONNECT = 255


def ssh_options(**others: str) -> list[str]:
    """ssh asks nothing, forwards nothing, and notices a dead connection."""
    usual = {
        "BatchMode": "yes",
        "ControlMaster": "auto",
        "ControlPath": f"{_control_directory()}/%C",
        "ControlPersist": str(_KEEP_SECONDS),
        "ConnectTimeout": str(_CONNECT_SECONDS),
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "RemoteCommand": "none",
        "EscapeChar": "none",
    }
    return [word for name, value in {**usual, **others}.items() for word in ("-o", f"{name}={value}")]


def ssh_argv(address: Address, words: Sequence[str], *, terminal: bool = False) -> list[str]:
    """A shell there reads the words, so they are quoted, and none of them is a user's text."""
    port = ["-p", str(address.port)] if address.port else []
    how = "-t" if terminal else "-T"
    return ["ssh", *ssh_options(), how, *port, "--", address.destination, shlex.join(words)]


def forward_argv(address: Address, ports: Mapping[int, int]) -> list[str]:
    """A separate connection that forwards ports of this machine to ports there."""
    own = {"ControlMaster": "no", "ControlPath": "none", "ClearAllForwardings": "no"}
    options = ssh_options(**own, ExitOnForwardFailure="yes")
    pairs = (("-L", f"127.0.0.1:{here}:127.0.0.1:{there}") for here, there in ports.items())
    port = ["-p", str(address.port)] if address.port else []
    words = [word for pair in pairs for word in pair]
    return ["ssh", *options, "-N", "-T", *words, *port, "--", address.destination]


def _control_directory() -> Path:
    """A directory only of this user's, with a path short enough for a socket in it."""
    bases = (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp")
    places = (Path(base) / f"af-ssh-{os.geteuid()}" for base in bases if base and os.path.isabs(base))
    place = next(place for place in places if len(str(place)) + _SOCKET_NAME < _SOCKET_PATH)
    make_directory(place, alone=True)
    require_own_directory(place)
    return place


def ask(
    address: Address, words: Sequence[str], message: bytes, *, seconds: float, ready: bytes | None = None
) -> Iterator[bytes]:
    """The lines of its standard output as they come; Unreachable if the program fails.

    Overdue if it has not begun to answer soon, or is not done within `seconds`. With `ready`, the message is
    only sent once that line has come.
    """
    with _started(ssh_argv(address, words), address) as process:
        late = list[str]()
        begins, clock = (
            threading.Timer(
                min(limit, threading.TIMEOUT_MAX),
                _end,
                args=(process, late, f"has not {what} within {limit:g} s"),
            )
            for limit, what in ((_BEGIN_SECONDS, "begun to answer"), (seconds, "answered"))
        )
        for timer in (begins, clock):
            timer.daemon = True
            timer.start()
        asked, reached = AskedProgram(process, message, ready), False
        try:
            for line in asked.lines(address.host):
                reached = True
                if ready is None or line.strip() == ready:
                    begins.cancel()
                yield line
            status = process.wait()
        finally:
            begins.cancel()
            clock.cancel()
    if late:
        why = "It may still carry out the request."
        raise Overdue(f"{address.host} {late[0]}", why=why, hint=_hint(address))
    if status:
        raise _failed(address, status, asked.last_words(), reached=reached)


@contextmanager
def _started(argv: Sequence[str], address: Address) -> Iterator[subprocess.Popen[bytes]]:
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C here does not reach it, and must not end the shared connection
        )
    except FileNotFoundError as error:
        raise ToolMissing("ssh is not installed", hint="sudo apt-get install openssh-client") from error
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                assert stream
                stream.close()


def _end(process: subprocess.Popen[bytes], late: list[str], why: str) -> None:
    late.append(why)
    process.kill()


def _failed(address: Address, status: int, why: str | None, *, reached: bool) -> Unreachable:
    """ssh ends alike where it cannot connect and where the program there is killed."""
    if status in (127, 126):
        return Unreachable(f"af cannot be run on {address.host}", why=why, hint="af fleet add --help")
    is_there = reached or status != _CANNOT_CONNECT
    what = f"{address.host} broke off" if is_there else f"{address.host} cannot be reached"
    return Unreachable(what, why=why or f"ssh ended with {status}.", hint=_hint(address))


def _hint(address: Address) -> str:
    return as_command("ssh", *address.words, "true")

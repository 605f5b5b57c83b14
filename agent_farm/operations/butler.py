"""`butler_…`: start, inspect and end the farm's server, from outside it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from agent_farm.errors import AgentFarmError
from agent_farm.operations.declare import acts, reads
from agent_farm.operations.operation import TERMINAL_ALONE, Answer, Context, Nothing, Request
from agent_farm.operations.sessions import log_of
from agent_farm.server.address import server_files
from agent_farm.server.launching import ensure_server, running_server
from agent_farm.server.stopping import stop_server
from agent_farm.sessions.butlers import load_all_butlers
from agent_farm.sessions.roster import all_butler_names, own_butler_name
from agent_farm.sessions.schedules import waiting_requests

_SECONDS_TO_COME_UP = 15


class ServerShown(Struct, frozen=True):
    """`butler` is the farm's own; the other fields are null if the server is not running."""

    running: bool
    butler: str
    port: int | None = None
    url: str | None = None
    pid: int | None = None
    supervisor: int | None = None
    started_at: float | None = None
    sessions: Annotated[int, Meta(description="Running sessions of all butlers")] = 0
    queued: int = 0
    log: str | None = None


class ButlerShown(Struct, frozen=True):
    butler: str
    sessions: int
    queued: int


class ServerStatus(Answer):
    server: ServerShown
    butlers: tuple[ButlerShown, ...]

    @property
    def exit_code(self) -> int:
        return 0 if self.server.running else 1


@reads(
    "Say whether the farm's server runs, where, and what its butlers do",
    details="Exit code 1 if it is not running.",
)
def butler_status(context: Context, request: Nothing) -> ServerStatus:
    root, log = context.farm.root, log_of(context)
    butlers = tuple(
        ButlerShown(name, log.count(name, "running"), log.count(name, "queued"))
        for name in all_butler_names(root)
    )
    return ServerStatus(_server(root, butlers), butlers)


def _server(root: Path, butlers: tuple[ButlerShown, ...]) -> ServerShown:
    address, own = running_server(root), own_butler_name(root)
    if address is None:
        return ServerShown(running=False, butler=own)
    return ServerShown(
        running=True,
        butler=own,
        port=address.port,
        url=f"http://localhost:{address.port}/mcp",
        pid=address.pid,
        supervisor=address.supervisor,
        started_at=address.started_at,
        sessions=sum(one.sessions for one in butlers),
        queued=sum(one.queued for one in butlers),
        log=str(server_files(root).log),
    )


class Started(Answer):
    """`started` is false if it was already running. `waiting` has no effect until it is approved."""

    server: ServerShown
    started: bool
    waiting: tuple[str, ...]


@acts(
    "Start the farm's server, or say where it is",
    repeats=True,
    doors=TERMINAL_ALONE,  # the other doors are in that server
)
def butler_start(context: Context, request: Nothing) -> Started:
    root = context.farm.root
    was_there = running_server(root) is not None
    ensure_server(root)
    _wait_until_up(root)
    waiting = [one.shown for butler in load_all_butlers(root) for one in waiting_requests(root, butler)]
    return Started(butler_status.answer_to(context, request).server, not was_there, tuple(waiting))


def _wait_until_up(root: Path) -> None:
    """Whoever starts it by hand wants to know whether it came up."""
    deadline = time.monotonic() + _SECONDS_TO_COME_UP
    while time.monotonic() < deadline:
        address = running_server(root)
        if address is None:
            raise AgentFarmError("The server ended at once", why=_last_words(root), hint="af butler logs")
        if address.pid is not None:
            return
        time.sleep(0.05)
    raise AgentFarmError("The server did not start in time", hint="af butler logs")


def _last_words(root: Path) -> str | None:
    try:
        lines = server_files(root).log.read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), None)


class ButlerStop(Request):
    now: Annotated[
        bool, Meta(description="Do not wait for its sessions: end them, and kill the server if necessary")
    ] = False


class Stopped(Answer):
    """`stopped` is false if there was nothing to end."""

    stopped: bool


@acts(
    "End the farm's server",
    effect="destroys",
    tolerant=True,
    repeats=True,
    doors=TERMINAL_ALONE,  # it would have to answer after its end
    details="Its sessions get 10 s to finish; builders keep running.",
)
def butler_stop(context: Context, request: ButlerStop) -> Stopped:
    return Stopped(stop_server(context.farm.root, now=request.now))

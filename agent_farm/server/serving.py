"""The server's process: takes over the listening sockets, serves until asked to end, then drains."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_farm.errors import AgentFarmError
from agent_farm.farm.ready_worktrees import follow_base
from agent_farm.farm.waiting import nudge_at
from agent_farm.git.repository import find_repository
from agent_farm.loopback import BACKLOG
from agent_farm.paths import FarmPaths
from agent_farm.server.address import (
    ServerFiles,
    load_address,
    load_token,
    require_token,
    server_files,
    store_address,
    supervisor_of,
)
from agent_farm.server.callers import Tokens
from agent_farm.server.connections import ACCEPTED_AT_ONCE, bounded_protocol
from agent_farm.server.idle import Activity, is_idle
from agent_farm.server.log_lines import start_log
from agent_farm.server.starting import turn_log
from agent_farm.server.tokens import hash_token
from agent_farm.sessions import telemetry
from agent_farm.sessions.database import Database
from agent_farm.sessions.other_machines import Elsewhere, NewElsewhere
from agent_farm.sessions.running_butlers import RunningButlers, open_butlers

DRAIN_SECONDS = 10.0
LOOK_SECONDS = 2.0
QUEUE_SECONDS = 10.0
FLEET_SECONDS = 15.0  # between looks: with the time that a look takes, a checkpoint is at most 30 s old
PLACING_SECONDS = 5.0

_log = logging.getLogger("agent_farm.butler")


def main(argv: list[str]) -> int:
    root, lock, *descriptors = argv
    start_log()
    for descriptor in (int(lock), *map(int, descriptors)):
        os.set_inheritable(descriptor, False)  # no session inherits the lock or a socket
    sockets = [socket.socket(fileno=int(word)) for word in descriptors]
    files = server_files(Path(root))
    try:
        find_repository(Path(root))  # refuses state that is not af's own before it is read
        asyncio.run(serve(Path(root), files, sockets, os.environ))
    except AgentFarmError as error:
        _log.error("%s%s", error.what, f" ({error.why})" if error.why else "")
        return (
            0 if error.code in ("butler", "settings", "damaged-file", "foreign-file") else 1
        )  # starting again would not help
    return 0


async def serve(
    root: Path,
    files: ServerFiles,
    sockets: list[socket.socket],
    environ: Mapping[str, str],
) -> None:
    """Until SIGTERM, or until the farm's directory is gone."""
    ports = tuple(dict.fromkeys(int(one.getsockname()[1]) for one in sockets))
    require_token(files)
    tokens = Tokens(FarmPaths(root).runs, hash_token(load_token(files.token)))
    end_export = telemetry.start_export(environ, "agent-farm-butler")
    running = RunningServer(root, files, ports, tokens, dict(environ))
    try:
        await running.serve(sockets)
    finally:
        if end_export:
            end_export()


@dataclass(slots=True)
class RunningServer:
    root: Path
    files: ServerFiles
    ports: tuple[int, ...]
    tokens: Tokens
    environ: Mapping[str, str]
    activity: Activity = field(default_factory=Activity)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, sockets: list[socket.socket]) -> None:
        from agent_farm.server.app import build_app

        butlers = open_butlers(
            self.root, ports=self.ports, tokens=self.tokens, environ=self.environ, elsewhere=self._elsewhere
        )
        server = make_uvicorn(build_app(butlers, self.activity))
        serving = asyncio.create_task(server.serve(sockets=sockets))
        self._listen_to_signals()
        _log.info("Serving %s on port %d, pid %d", butlers.own.name, self.ports[0], os.getpid())
        self._store(stopping=False)
        besides = [
            asyncio.create_task(butlers.keep_tidy()),
            asyncio.create_task(self._start_waiting()),
            *(asyncio.create_task(self._keep_fleet(places=places)) for places in (False, True)),
            asyncio.create_task(butlers.go_on_elsewhere()),
        ]
        until = [
            asyncio.create_task(waiting)
            for waiting in (
                self.asked.wait(), self._farm_is_gone(), self._is_idle(butlers), butlers.run_schedules()
            )
        ]  # fmt: skip
        await asyncio.wait([serving, *until], return_when=asyncio.FIRST_COMPLETED)
        self._store(stopping=True)
        for task in (*until, *besides):
            task.cancel()
        if not await butlers.drain(DRAIN_SECONDS):
            _log.warning("Sessions were cancelled after %g s", DRAIN_SECONDS)
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving
        butlers.close()
        _log.info("Ended")

    def _elsewhere(self, database: Database) -> NewElsewhere:
        @cache
        def reach() -> Elsewhere:
            from agent_farm.operations.fleet.sessions_elsewhere import (
                SessionsElsewhere,  # loads ssh, which few farms need
            )

            return SessionsElsewhere(self.root, database)

        return reach

    async def _farm_is_gone(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not self.files.address.exists():
                break
            turn_log(self.files.log)
        _log.info("%s is gone", self.files.address)

    async def _start_waiting(self) -> None:
        """Starts what a merge made without af has made possible: waiting builders, and ready worktrees."""
        while True:
            await asyncio.sleep(QUEUE_SECONDS)
            with suppress(AgentFarmError, OSError):
                await asyncio.to_thread(nudge_at, self.root)
            with suppress(AgentFarmError, OSError):
                await asyncio.to_thread(follow_base, self.root)

    async def _keep_fleet(self, *, places: bool) -> None:
        """Fetches the work of builders on other machines; or, with `places`, places lost ones again."""
        took = 0.0
        while True:
            usual = PLACING_SECONDS if places else FLEET_SECONDS
            await asyncio.sleep(max(usual - took, usual / 3))
            begun, took = time.monotonic(), 0.0
            if not FarmPaths(self.root).fleet.exists():
                continue
            from agent_farm.operations.fleet.server_keeping import keep_fleet, place_lost  # ssh, few need it

            look = partial(place_lost, self.root, self.environ) if places else partial(keep_fleet, self.root)
            try:
                for problem in await asyncio.to_thread(look):
                    _log.warning("%s", problem)
            except (AgentFarmError, OSError) as error:
                _log.warning("Builders on other machines were not looked after: %s", error)
            except Exception:  # a bug of ours must not stop the looks
                _log.exception("Builders on other machines were not looked after")
            took = time.monotonic() - begun

    async def _is_idle(self, butlers: RunningButlers) -> None:
        """Whoever looks for the server after this starts the next; a caller just before is still served."""

        async def nobody_needs_it() -> bool:
            return await asyncio.to_thread(is_idle, butlers, self.activity)

        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if await nobody_needs_it():
                self._store(stopping=True)
                if await nobody_needs_it():
                    break
                self._store(stopping=False)
        _log.info("Nothing has happened for a while")

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.asked.set)

    def _store(self, *, stopping: bool) -> None:
        """Record where the server is; not if the farm is gone."""
        if not self.files.address.exists():
            return
        known = load_address(self.files)
        assert known is not None
        parent = os.getppid()  # once the supervisor was killed, the process that adopts orphans
        mine = replace(
            known,
            port=self.ports[0],
            pid=os.getpid(),
            supervisor=parent if parent == supervisor_of(self.files) else None,
            stopping=stopping,
            started_at=known.started_at if known.pid == os.getpid() else time.time(),
        )
        try:
            store_address(self.files, mine)
        except (AgentFarmError, OSError) as error:  # a full disk, say: sessions still end properly
            _log.warning("%s is not up to date: %s", self.files.address, error)


def make_uvicorn(app: Any) -> Any:
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves signals to its caller."""

        def capture_signals(self) -> Any:
            return nullcontext()

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            for opened in sockets or ():
                opened.listen(BACKLOG)  # `backlog` below also bounds what the kernel queues

    config = uvicorn.Config(
        app,
        http=bounded_protocol(),
        backlog=ACCEPTED_AT_ONCE,
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=3,
        ws="websockets-sansio",
        server_header=False,
    )
    return Quiet(config)

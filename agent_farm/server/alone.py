"""`af run` without a server: one session, with `/mcp` served for as long as it lives."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_farm.paths import FarmPaths
from agent_farm.server.client import OnEvent, RunRequest
from agent_farm.server.sockets import listen
from agent_farm.server.tokens import Tokens
from agent_farm.sessions import telemetry
from agent_farm.sessions.order import Progress
from agent_farm.sessions.result import SpawnerResult


def run_alone(root: Path, butler: str | None, request: RunRequest, on_event: OnEvent) -> SpawnerResult:
    """Ctrl-C and SIGTERM cancel the session and complete its record first; both raise KeyboardInterrupt."""
    try:
        return asyncio.run(_run(root, butler, request, on_event))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _run(root: Path, butler: str | None, request: RunRequest, on_event: OnEvent) -> SpawnerResult:
    from agent_farm.server.app import build_app
    from agent_farm.server.serving import make_uvicorn
    from agent_farm.sessions.service import open_service

    _end_on_sigterm()
    for name in ("session_run", "spawner"):  # what they would warn of is told as the error of the command
        logging.getLogger(f"agent_farm.butler.{name}").setLevel(logging.ERROR)
    end_export = telemetry.start_export(os.environ, "agent-farm-run")
    sockets = listen(0)
    tokens = Tokens(FarmPaths(root).runs)
    service = open_service(
        root, butler, port=sockets[0].getsockname()[1], tokens=tokens, environ=dict(os.environ)
    )
    server = make_uvicorn(build_app(service))
    serving = asyncio.create_task(server.serve(sockets=sockets))

    def observe(progress: Progress) -> None:
        on_event({"event": progress.event, "session_id": progress.session_id, **progress.detail})

    try:
        with telemetry.continued(request.traceparent):
            return await service.run(request, observe)
    finally:
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving
        service.close()
        if end_export:
            end_export()


def _end_on_sigterm() -> None:
    """SIGTERM cancels the session like Ctrl-C does, so that its record is completed."""
    task: asyncio.Task[Any] | None = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)

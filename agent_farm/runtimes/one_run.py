"""One headless run of an adapter, from the preliminary checks to its result. Panes do not load this."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.conversations import keep_conversation
from agent_farm.runtimes.mcp_config import McpServer, config_directory
from agent_farm.runtimes.result import Failure, RuntimeResult, failure_of


async def result_of(adapter: RuntimeAdapter, start: Callable[[], Start], home: Path | None) -> RuntimeResult:
    """Failures of the run are in the result; only cancellation is raised."""
    started = time.monotonic()
    try:
        result = await _run_in_scratch(adapter, start(), home)
    except (AgentFarmError, OSError, ValueError) as error:
        result = RuntimeResult(failure=failure_of(error))
    finally:
        if home is not None:
            keep_conversation(home, _conversation_files(adapter))
    return replace(result, seconds=round(time.monotonic() - started, 3))


async def _run_in_scratch(adapter: RuntimeAdapter, start: Start, home: Path | None) -> RuntimeResult:
    """Run it in a directory of its own, unless something prevents the run."""
    own, server = start.env, start.server
    failure = _obstacle(adapter, start) or await _find_dead_server(adapter, server)
    if failure:
        return RuntimeResult(failure=failure)
    with config_directory(server.name if server else adapter.name, env=own) as scratch:
        start = structs.replace(
            start,
            env={**own, **(server.environment() if server else {})},
            home=home or scratch / "home",
            place=scratch,
            run=scratch.name,
            command=adapter.find_command(own, start.command) or (),
        )
        return await adapter.run_headless(start)


def _obstacle(adapter: RuntimeAdapter, start: Start) -> Failure | None:
    """Why the run need not even be tried."""
    if (missing := adapter.program_problem(start.env, start.command)) is not None:
        return Failure("not-installed", missing)
    if (reason := adapter.cli.login(start.env, start.model)) is not None:
        return Failure("not-logged-in", reason)
    if not start.cwd.is_dir():
        return Failure("refused-argument", f"there is no directory {start.cwd} to work in")
    return None


async def _find_dead_server(adapter: RuntimeAdapter, server: McpServer | None) -> Failure | None:
    if server is None or adapter.cli.notices_dead_mcp:
        return None
    from agent_farm.runtimes.mcp_probe import probe_server

    return await probe_server(server)


def _conversation_files(adapter: RuntimeAdapter) -> tuple[str, ...]:
    home = adapter.cli.home
    return tuple(f"{adapter.binary_name}/{file}" for file in home.conversations) if home else ()

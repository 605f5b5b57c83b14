"""MCP tools for an architect: what `af spawn`, `status`, `send`, `wait`, `diff` and `prune` do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from mcp.server import MCPServer

from agent_farm.builders.modes import Flags, choose_mode
from agent_farm.butler.tool_box import tool
from agent_farm.errors import TimedOut
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders

OpenFarm = Callable[[], Farm]
LONGEST_WAIT = 600.0
LOOK_SECONDS = 0.3


def add_farm_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def spawn(
        task: str | None = None,
        project: str | None = None,
        protocol: str | None = None,
        args: str | None = None,
        files: list[str] | None = None,
        runtime: str | None = None,
        model: str | None = None,
        base: str | None = None,
    ) -> dict[str, Any]:
        """Start a builder in its own worktree: give one of `task` (text), `project` (spec id) or `protocol`.

        `args` is a JSON object for the protocol, `files` are paths that matter for the task.
        """
        flags = Flags(None, task, project, protocol, False, tuple(files or ()), args)
        return await asyncio.to_thread(_spawn, open_farm, flags, runtime, model, base)

    @tool(server)
    async def status(ids: list[str] | None = None) -> dict[str, Any]:
        """All builders, or those named: state with its source and age, branch, ahead, behind, dirty."""

        def read() -> list[dict[str, Any]]:
            farm = open_farm()
            chosen = [farm.require(id).id for id in ids] if ids else None
            return [builder.to_json() for builder in list_builders(farm, chosen)]

        return {"builders": await asyncio.to_thread(read)}

    @tool(server)
    async def send(id: str, text: str) -> dict[str, Any]:
        """Deliver `text` to a running builder. `outcome` is submitted, held or failed, with the reason."""
        return await asyncio.to_thread(send_text, open_farm, id, text)

    _add_wait(server, open_farm)
    _add_landing(server, open_farm)


def _add_wait(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def wait(
        ids: list[str], states: str | None = None, any_is_enough: bool = False, timeout: float = 60.0
    ) -> dict[str, Any]:
        """Wait until the builders are idle, waiting or ended, or in one of `states` (comma-separated).

        At most 600 s; a builder that fails or vanishes ends the wait with an error.
        """
        deadline = time.monotonic() + min(timeout, LONGEST_WAIT)
        while True:
            try:
                return await asyncio.to_thread(_look, open_farm, ids, states, any_is_enough)
            except TimedOut as error:
                if time.monotonic() >= deadline:
                    raise TimedOut(f"Not there after {timeout:g} s", evidence=error.evidence) from error
            await asyncio.sleep(LOOK_SECONDS)  # no thread is held meanwhile: there may be many who wait


def _add_landing(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def diff(id: str, stat: bool = False) -> dict[str, Any]:
        """What a builder changed since its base, uncommitted work included; `stat`: only which files."""
        return await asyncio.to_thread(_diff, open_farm, id, stat)

    @tool(server)
    async def prune(
        ids: list[str] | None = None, discard_changes: bool = False, discard_commits: bool = False
    ) -> dict[str, Any]:
        """Remove builders (whole ids), or without ids all that are finished and landed.

        Refused with the evidence when work exists nowhere else; the flags waive one thing each, and even
        then it can be brought back by `af restore`.
        """
        return await asyncio.to_thread(_prune, open_farm, ids, discard_changes, discard_commits)


def _spawn(
    open_farm: OpenFarm, flags: Flags, runtime: str | None, model: str | None, base: str | None
) -> dict[str, Any]:
    from agent_farm.farm.plan import SpawnOrder, preflight
    from agent_farm.farm.spawn import spawn

    farm = open_farm()
    mode = choose_mode(flags)
    record = spawn(farm, preflight(farm, SpawnOrder(mode, runtime, model, base=base)))
    return {"builder": list_builders(farm, [record.id], with_git=False)[0].to_json()}


def send_text(open_farm: OpenFarm, id: str, text: str) -> dict[str, Any]:
    from agent_farm.farm.send import send

    farm = open_farm()
    record = farm.require(id)
    delivery = send(farm, record, text)
    return {"id": record.id, "outcome": delivery.outcome, "reason": delivery.reason}


def _look(open_farm: OpenFarm, ids: Sequence[str], states: str | None, any_is_enough: bool) -> dict[str, Any]:
    """The states when they are the wanted ones; TimedOut when they are not yet."""
    from agent_farm.farm.wait import parse_states, wait

    farm = open_farm()
    chosen = [farm.require(id).id for id in ids]
    found = wait(farm, chosen, parse_states(states), any_is_enough=any_is_enough, timeout=0)
    return {"states": {id: {"state": status.state, "reason": status.reason} for id, status in found.items()}}


def _diff(open_farm: OpenFarm, id: str, stat: bool) -> dict[str, Any]:
    from agent_farm.farm.land import diff

    farm = open_farm()
    record = farm.require(id)
    return {"id": record.id, "diff": diff(farm, record, committed=False, stat=stat, color=False)}


def _prune(
    open_farm: OpenFarm, ids: Sequence[str] | None, discard_changes: bool, discard_commits: bool
) -> dict[str, Any]:
    from agent_farm.farm.prune import finished_and_landed, prune

    farm = open_farm()
    chosen = [farm.require_exact(id) for id in ids] if ids else finished_and_landed(farm)[0]
    pruned = [
        prune(farm, record, discard_changes=discard_changes, discard_commits=discard_commits)
        for record in chosen
    ]
    return {"pruned": [{"id": one.id, "branch": one.branch, "kept": one.ref} for one in pruned]}

"""MCP tools for an architect: what `af stop`, `resume` and `prune` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.server import MCPServer

from agent_farm.butler.tool_box import in_thread, text_of, tool
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders
from agent_farm.launch import as_command
from agent_farm.sessions.agreement import agreed_before

OpenFarm = Callable[[], Farm]


def add_life_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def stop(ids: list[str]) -> dict[str, Any]:
        """End the builders' runtimes; worktree, branch and conversation stay for `resume`."""
        return await in_thread("stop", _stop, open_farm, ids)

    @tool(server)
    async def resume(id: str) -> dict[str, Any]:
        """Start a builder's runtime again; `continues` says whether its conversation goes on."""
        return await in_thread("start", _resume, open_farm, id)

    @tool(server)
    async def prune(
        ids: list[str] | None = None,
        discard_changes: bool = False,
        discard_commits: bool = False,
        stop: bool = False,
    ) -> dict[str, Any]:
        """Remove builders (whole ids), or without ids all that are finished and landed.

        Refused with the evidence when work exists nowhere else; the flags waive one thing each, and even
        then it can be brought back by `af restore`. `stop` ends the named builders first, if they run and
        can be removed; without ids it takes those, too, that have landed and are idle.
        """
        waived = {"discard_changes": discard_changes, "discard_commits": discard_commits, "stop": stop}
        return await in_thread("prune", _prune, open_farm, ids, waived)


def _stop(open_farm: OpenFarm, ids: Sequence[str]) -> dict[str, Any]:
    from agent_farm.farm.stop import stop

    farm = open_farm()
    chosen = [farm.require(id) for id in dict.fromkeys(ids)]
    if not chosen:
        raise UsageError("ids is empty")
    stopped, failed = list[str](), list[str]()
    for record in chosen:
        try:
            stopped.append(stop(farm, record).id)
        except AgentFarmError as error:
            if len(chosen) == 1:
                raise
            failed.append(text_of(error))  # the others are stopped all the same
    return {"stopped": stopped, "failed": failed}


def _resume(open_farm: OpenFarm, id: str) -> dict[str, Any]:
    from agent_farm.farm.resume import resume

    farm = open_farm()
    record = farm.require(id)
    with agreed_before(as_command("af", "resume", "--yes", record.id)):
        resumed = resume(farm, record)
    builder = list_builders(farm, [record.id], with_git=False)[0].to_json()
    return {"builder": builder, "continues": resumed.continues}


def _prune(open_farm: OpenFarm, ids: Sequence[str] | None, waived: dict[str, bool]) -> dict[str, Any]:
    from agent_farm.farm.prune import Waived, find_candidates, prune_each, to_json

    farm, allowed = open_farm(), Waived(**waived)
    if ids:
        chosen = [farm.require_exact(id) for id in dict.fromkeys(ids)]
    else:
        chosen = list(find_candidates(farm, stop=allowed.stop).chosen)
    results = list(prune_each(farm, chosen, allowed))
    if len(chosen) == 1 and results[0].error:
        raise results[0].error
    return to_json(results)

"""MCP tools for an architect: start builders, land what they did."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer

from agent_farm.builders.modes import Flags, choose_mode
from agent_farm.butler.life_tools import add_life_tools
from agent_farm.butler.tool_box import in_thread, tool
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders
from agent_farm.farm.plan import SpawnOrder
from agent_farm.runtimes.base import Permissions
from agent_farm.sessions.agreement import agreed_before

OpenFarm = Callable[[], Farm]


def add_farm_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    """What `af` does with builders, for an architect that is a program."""
    _add_spawn(server, open_farm)
    add_life_tools(server, open_farm)


def _add_spawn(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def spawn(
        task: str | None = None,
        project: str | None = None,
        protocol: str | None = None,
        args: dict[str, Any] | str | None = None,
        files: list[str] | None = None,
        runtime: str | None = None,
        model: str | None = None,
        base: str | None = None,
        fetch: bool = False,
        permissions: Permissions | None = None,
        branch: str | None = None,
        role: str | None = None,
        shell: bool = False,
        ephemeral: bool = False,
    ) -> dict[str, Any]:
        """Start a builder in its own worktree: `task` (text), `project` (spec id), `protocol` or `shell`.

        `args` is what the protocol is given, `files` are paths that matter for the task. `permissions`:
        ask, edit (files of its worktree, no command) or all. `branch` goes on with one that exists, `role`
        is the file of another system prompt, relative to the repository; `ephemeral` removes the builder
        when its runtime has ended and its work has landed.
        """
        given = json.dumps(args) if isinstance(args, dict) else args
        flags = Flags(None, task, project, protocol, shell, tuple(files or ()), given)

        def start() -> dict[str, Any]:
            farm = open_farm()
            order = SpawnOrder(
                choose_mode(flags),
                runtime,
                model,
                permissions,
                base,
                branch,
                fetch,
                farm.root / role if role else None,
                ephemeral=ephemeral,
                naming_agrees=False,
            )
            return _spawn(farm, order)

        return await in_thread("start", start)


def _spawn(farm: Farm, order: SpawnOrder) -> dict[str, Any]:
    from agent_farm.farm.plan import preflight
    from agent_farm.farm.spawn import spawn

    with agreed_before("af spawn --yes …"):
        plan = preflight(farm, order)
    record = spawn(farm, plan)
    return {"builder": list_builders(farm, [record.id], with_git=False)[0].to_json()}

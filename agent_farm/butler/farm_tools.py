"""MCP tools for an architect: start builders, see how they are, talk to them, wait for them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from mcp.server import MCPServer

from agent_farm.builders.modes import Flags, choose_mode
from agent_farm.butler.life_tools import add_life_tools
from agent_farm.butler.look_tools import add_look_tools
from agent_farm.butler.tool_box import in_thread, tool
from agent_farm.errors import TimedOut
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders
from agent_farm.farm.plan import SpawnOrder
from agent_farm.runtimes.base import Permissions
from agent_farm.sessions.agreement import agreed_before
from agent_farm.tmux.delivery import Delivery

OpenFarm = Callable[[], Farm]
LONGEST_WAIT = 600.0
LOOK_SECONDS = 0.3


def add_farm_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    """What `af` does with builders, for an architect that is a program."""
    _add_spawn(server, open_farm)
    _add_talk(server, open_farm)
    _add_wait(server, open_farm)
    add_look_tools(server, open_farm)
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


def _add_talk(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def status(ids: list[str] | None = None) -> dict[str, Any]:
        """All builders, or those named: state with its source and age, branch, ahead, behind, dirty."""

        def read() -> list[dict[str, Any]]:
            farm = open_farm()
            chosen = [farm.require(id).id for id in ids] if ids else None
            return [builder.to_json() for builder in list_builders(farm, chosen)]

        return {"builders": await in_thread("look", read)}

    @tool(server)
    async def send(id: str, text: str) -> dict[str, Any]:
        """Deliver `text` to a running builder. `outcome` is submitted, held or failed, with the reason."""
        return await in_thread("send", send_text, open_farm, id, text)

    @tool(server)
    async def send_keys(id: str, keys: str) -> dict[str, Any]:
        """Press keys in a builder's runtime, to answer a dialog: look by `capture` before and after.

        `keys`, separated by spaces: Enter Escape Tab Up Down Left Right Space BSpace C-c, or one character.
        """
        return await in_thread("send", _press, open_farm, id, keys)


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
                return await in_thread("wait", _look, open_farm, ids, states, any_is_enough)
            except TimedOut as error:
                if time.monotonic() >= deadline:
                    raise TimedOut(f"Not there after {timeout:g} s", evidence=error.evidence) from error
            await asyncio.sleep(LOOK_SECONDS)  # no thread is held meanwhile: there may be many who wait


def _spawn(farm: Farm, order: SpawnOrder) -> dict[str, Any]:
    from agent_farm.farm.plan import preflight
    from agent_farm.farm.spawn import spawn

    with agreed_before("af spawn --yes …"):
        plan = preflight(farm, order)
    record = spawn(farm, plan)
    return {"builder": list_builders(farm, [record.id], with_git=False)[0].to_json()}


def send_text(open_farm: OpenFarm, id: str, text: str) -> dict[str, Any]:
    from agent_farm.farm.send import send

    farm = open_farm()
    record = farm.require(id)
    return _delivery(record.id, send(farm, record, text))


def _press(open_farm: OpenFarm, id: str, keys: str) -> dict[str, Any]:
    from agent_farm.farm.send import press
    from agent_farm.tmux.keys import parse_keys

    pressed = parse_keys(keys)
    farm = open_farm()
    record = farm.require(id)
    return _delivery(record.id, press(farm, record, pressed))


def _delivery(id: str, delivery: Delivery) -> dict[str, Any]:
    return {"id": id, "outcome": delivery.outcome, "reason": delivery.reason}


def _look(open_farm: OpenFarm, ids: Sequence[str], states: str | None, any_is_enough: bool) -> dict[str, Any]:
    """The states when they are the wanted ones; TimedOut when they are not yet."""
    from agent_farm.farm.wait import parse_states, wait

    farm = open_farm()
    chosen = [farm.require(id).id for id in ids]
    found = wait(farm, chosen, parse_states(states), any_is_enough=any_is_enough, timeout=0)
    return {"states": {id: {"state": status.state, "reason": status.reason} for id, status in found.items()}}

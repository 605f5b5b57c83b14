"""MCP tools for an architect: what `af diff`, `merge` and `conflicts` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from mcp.server import MCPServer

from agent_farm.butler.tool_box import in_thread, text_of, tool
from agent_farm.errors import ConsentNeeded
from agent_farm.farm.farm import Farm
from agent_farm.launch import as_command
from agent_farm.sessions.agreement import agreed_before

OpenFarm = Callable[[], Farm]


def add_landing_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def diff(id: str, stat: bool = False) -> dict[str, Any]:
        """What a builder changed since its base, uncommitted work included; `stat`: only which files."""
        return await in_thread("diff", _diff, open_farm, id, stat)

    @tool(server)
    async def merge(
        ids: list[str],
        strategy: Literal["merge", "squash", "rebase", "ff"] | None = None,
        message: str | None = None,
        here: bool = False,
    ) -> dict[str, Any]:
        """Land what builders have checked out on the main checkout's branch, in the order given.

        The first that is refused ends it with nothing changed for that one: `error` is the reason, `failed`
        its id. `left_behind` are files that are not committed, and so did not land. `here` lands on a branch
        that is not the base.
        """
        return await in_thread("merge", _merge, open_farm, ids, strategy, message, here)

    @tool(server)
    async def conflicts(ids: list[str] | None = None) -> dict[str, Any]:
        """Which builders' committed work conflicts, with each other and with their base; default: all."""
        return await in_thread("conflicts", _conflicts, open_farm, ids)


def _diff(open_farm: OpenFarm, id: str, stat: bool) -> dict[str, Any]:
    from agent_farm.farm.comparing import diff

    farm = open_farm()
    record = farm.require(id)
    found = diff(farm, record, committed=False, stat=stat, color=False)
    return {"id": record.id, "diff": found.text, "branch": found.branch, "commit": found.commit}


def _merge(
    open_farm: OpenFarm, ids: Sequence[str], strategy: str | None, message: str | None, here: bool
) -> dict[str, Any]:
    from agent_farm.farm.land import MergeRequest, Outcome, land_each, outcomes_json

    farm = open_farm()
    chosen = [farm.require(id) for id in dict.fromkeys(ids)]
    outcomes: list[Outcome] = []
    for outcome in land_each(farm, chosen, MergeRequest(strategy, message, here)):
        outcomes.append(outcome)
        if isinstance(outcome.error, ConsentNeeded) or (outcome.error and len(chosen) == 1):
            with agreed_before(as_command("af", "merge", "--yes", outcome.id)):
                raise outcome.error
    reasons = [text_of(one.error) for one in outcomes if one.error]
    return {**outcomes_json(outcomes, chosen), "error": reasons[0] if reasons else None}


def _conflicts(open_farm: OpenFarm, ids: Sequence[str] | None) -> dict[str, Any]:
    from dataclasses import asdict

    from agent_farm.farm.comparing import foresee_conflicts

    farm = open_farm()
    chosen = [farm.require(id) for id in dict.fromkeys(ids)] if ids else list(farm.records().values())
    found = foresee_conflicts(farm, chosen)
    return {
        "conflicts": [asdict(one) for one in found.conflicts],
        "unknown": [asdict(one) for one in found.unknown],
    }

"""The spawn form: what there is to choose, and the spawn itself, with the command line's rules and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent_farm.builders.modes import Flags, choose_mode
from agent_farm.dashboard.desk import Desk
from agent_farm.dashboard.operations import Call, Operation
from agent_farm.dashboard.schemas import BUILDER
from agent_farm.dashboard.values import Field
from agent_farm.dashboard.views import ANYTHING, TEXT, builder_json, list_of
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders
from agent_farm.farm.plan import SpawnOrder, preflight
from agent_farm.farm.spawn import config_of, free_name, spawn
from agent_farm.settings import PERMISSIONS

Answer = Mapping[str, Any]


def spawn_builder(desk: Desk, call: Call) -> Answer:
    farm, body = desk.farm(), call.body
    plan = preflight(farm, _order(farm, body))
    if body["dry_run"]:
        config = asdict(config_of(farm, plan, free_name(farm, plan, farm.registry.read())))
        return {"plan": config, "builder": None, "notes": list(plan.notes)}
    record = spawn(farm, plan)
    shown = list_builders(farm, [record.id], with_git=False)[0]
    return {"builder": builder_json(shown), "plan": None, "notes": list(plan.notes)}


def _order(farm: Farm, body: Mapping[str, Any]) -> SpawnOrder:
    mode = choose_mode(
        Flags(
            None,
            body["task"],
            body["project"],
            body["protocol"],
            bool(body["shell"]),
            tuple(body["files"] or ()),
            body["args"],
        )
    )
    return SpawnOrder(
        mode,
        runtime=body["runtime"],
        model=body["model"],
        permissions=body["permissions"],
        base=body["base"],
        branch=body["branch"],
        fetch=bool(body["fetch"]),
        role=Path(farm.root, body["role"]) if body["role"] else None,
        no_role=bool(body["no_role"]),
        ephemeral=bool(body["ephemeral"]),
        yes=bool(body["agree"]),
        naming_agrees=False,
    )


SPAWNING = (
    Operation(
        "POST", "/api/builders", "spawn_builder",
        "Start a builder in exactly one mode: task, project, protocol or shell",
        spawn_builder,
        {"builder": {**BUILDER, "type": ["object", "null"]}, "plan": ANYTHING, "notes": list_of(TEXT)},
        body=(
            Field("task", text="the task, as --task"),
            Field("project", text="a spec's id, as --project"),
            Field("protocol", text="a protocol's name, as --protocol"),
            Field("shell", "flag", "neither prompt nor role, as --shell"),
            Field("files", "texts", "files that matter for the task, as --files"),
            Field("args", text="arguments of the protocol, a JSON object in a string, as --args"),
            Field("role", text="system prompt to use; relative to the repository"),
            Field("no_role", "flag"),
            Field("runtime"),
            Field("model"),
            Field("permissions", choices=PERMISSIONS),
            Field("base", text="revision to start from"),
            Field("fetch", "flag", "fetch the base's remote first"),
            Field("branch", text="go on with a branch that exists"),
            Field("ephemeral", "flag", "prune it when its runtime ends, if its work has landed"),
            Field("agree", "flag", "agree to what the repository wants to run or copy, as --yes"),
            Field("dry_run", "flag", "make nothing, answer with the plan"),
        ),
        status=200,
    ),
)  # fmt: skip

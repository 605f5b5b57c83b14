"""The spawn form: what there is to choose, and the spawn itself, with the command line's rules and words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent_farm.builders.ids import list_specs
from agent_farm.builders.modes import Flags, choose_mode
from agent_farm.dashboard.desk import Desk
from agent_farm.dashboard.operations import Call, Operation
from agent_farm.dashboard.schemas import BUILDER
from agent_farm.dashboard.values import Field
from agent_farm.dashboard.views import ANYTHING, MAYBE_TEXT, TEXT, builder_json, list_of, object_schema
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders
from agent_farm.farm.plan import SpawnOrder, preflight
from agent_farm.farm.spawn import config_of, free_name, spawn
from agent_farm.runtimes import adapter_names
from agent_farm.runtimes.origin import runtime_problem
from agent_farm.settings import PERMISSIONS

Answer = Mapping[str, Any]


def choices(desk: Desk, call: Call) -> Answer:
    farm = desk.farm()
    head = farm.repository.head(farm.root)
    specs = farm.repository.list_directory(head.commit, "codev/specs")
    protocols = farm.repository.list_directory(head.commit, "codev/protocols")
    return {
        "projects": [{"id": spec.id, "name": spec.name} for spec in list_specs(specs)],
        "protocols": sorted(name for name in protocols if "." not in name),
        "runtimes": [_runtime(farm, name) for name in adapter_names(farm.root)],
        "permissions": list(PERMISSIONS),
        "defaults": {
            "runtime": farm.settings.text("spawn.runtime"),
            "model": farm.settings.text("spawn.model"),
            "permissions": farm.settings.agreed("spawn.permissions"),
            "base": farm.settings.text("spawn.base") or head.branch or head.commit,
        },
    }


def _runtime(farm: Farm, name: str) -> dict[str, str | None]:
    return {"name": name, "problem": runtime_problem(farm.root, farm.settings, name, os.environ)}


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


_PROJECT = object_schema({"id": TEXT, "name": TEXT})
_RUNTIME = object_schema({"name": TEXT, "problem": MAYBE_TEXT})

SPAWNING = (
    Operation(
        "GET", "/api/choices", "get_choices", "What a spawn can choose from", choices,
        {
            "projects": list_of(_PROJECT),
            "protocols": list_of(TEXT),
            "runtimes": list_of(_RUNTIME),
            "permissions": list_of(TEXT),
            "defaults": ANYTHING,
        },
    ),
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

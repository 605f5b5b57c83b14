"""`spawn`: a builder starts in its own worktree, branch and tmux session, in exactly one mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from agent_farm.builders.modes import Flags, choose_mode
from agent_farm.farm.farm import Farm
from agent_farm.farm.plan import Plan, SpawnOrder, preflight
from agent_farm.farm.spawn import config_of, free_name, spawn
from agent_farm.operations.builders import Yes
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.operations.shown import BuilderShown, show_builder
from agent_farm.runtimes.base import Permissions


class Spawn(Request):
    task: Annotated[str | None, Meta(description="What is to be done, in your words")] = None
    project: Annotated[str | None, Meta(description="Id of a spec in codev/specs that is implemented")] = None
    protocol: Annotated[str | None, Meta(description="Name of a protocol that is followed")] = None
    shell: Annotated[bool, Meta(description="Neither prompt nor role")] = False
    files: Annotated[tuple[str, ...], Meta(description="Paths that matter for the task")] = ()
    args: Annotated[
        dict[str, Any] | str | None, Meta(description="What the protocol is given: a JSON object")
    ] = None
    runtime: Annotated[str | None, Meta(description="AI CLI; default: [spawn] runtime")] = None
    model: Annotated[str | None, Meta(description="Default: the runtime's own")] = None
    permissions: Annotated[
        Permissions | None, Meta(description="ask, edit (files of its worktree, no command) or all")
    ] = None
    base: Annotated[str | None, Meta(description="Revision to start from; default: the branch here")] = None
    fetch: Annotated[bool, Meta(description="Fetch the base's remote first")] = False
    branch: Annotated[str | None, Meta(description="A branch that exists, to go on with")] = None
    role: Annotated[
        str | None, Meta(description="File of another system prompt, relative to the repository")
    ] = None
    no_role: Annotated[bool, Meta(description="No system prompt")] = False
    ephemeral: Annotated[
        bool, Meta(description="Remove it when its runtime has ended and its work has landed")
    ] = False
    dry_run: Annotated[bool, Meta(description="Make nothing, answer with the plan")] = False
    yes: Yes = False


class Planned(Struct, frozen=True):
    """What would be made; the id and what follows from it are drawn anew when it is."""

    type: str
    id: str
    branch: str
    worktree: str
    prompt: str | None
    role: str | None
    context_files: tuple[str, ...]
    protocol_args: dict[str, Any] | None
    runtime: str
    model: str | None
    base: str


class Spawned(Answer):
    builder: BuilderShown | None
    plan: Planned | None
    notes: Annotated[tuple[str, ...], Meta(description="What should be known, and stops nothing")] = ()


def _spawn(context: Context, request: Spawn) -> Spawned:
    farm = context.farm
    plan = preflight(farm, _order(context, farm, request))
    if request.dry_run:
        return Spawned(None, _planned(farm, plan), tuple(plan.notes))
    record = spawn(farm, plan)
    return Spawned(show_builder(farm, record.id), None, tuple(plan.notes))


def _order(context: Context, farm: Farm, request: Spawn) -> SpawnOrder:
    args = json.dumps(request.args) if isinstance(request.args, dict) else request.args
    flags = Flags(None, request.task, request.project, request.protocol, request.shell, request.files, args)
    return SpawnOrder(
        choose_mode(flags),
        runtime=request.runtime,
        model=request.model,
        permissions=request.permissions,
        base=request.base,
        branch=request.branch,
        fetch=request.fetch,
        role=Path(farm.root, request.role) if request.role else None,
        no_role=request.no_role,
        ephemeral=request.ephemeral,
        yes=request.yes,
        ask=context.ask,
        naming_agrees=context.naming_agrees,
    )


def _planned(farm: Farm, plan: Plan) -> Planned:
    config = config_of(farm, plan, free_name(farm, plan, farm.registry.read()))
    return Planned(
        type=config.type,
        id=config.id,
        branch=config.branch,
        worktree=str(config.worktree),
        prompt=config.prompt,
        role=str(config.role) if config.role else None,
        context_files=config.context_files,
        protocol_args=dict(config.protocol_args) if config.protocol_args is not None else None,
        runtime=config.runtime,
        model=config.model,
        base=config.base,
    )


OPERATION = Operation(
    "spawn",
    "Start a builder in its own worktree: a task, a project (a spec), a protocol or a shell",
    Spawn,
    Spawned,
    single(_spawn),
    only,
    effect="changes",
    outside=True,
    pool="start",
)

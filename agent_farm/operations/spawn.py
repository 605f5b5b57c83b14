"""`spawn`: a builder in its own worktree, branch and tmux session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from agent_farm.builders.config import BuilderType
from agent_farm.farm.farm import Farm
from agent_farm.operations.operation import Answer, Context, Operation, single
from agent_farm.operations.shown import BuilderShown
from agent_farm.operations.spawn_plan import Plan, preflight
from agent_farm.operations.spawn_request import Spawn
from agent_farm.operations.spawn_steps import config_of, free_name, make_builder


class PlanShown(Struct, frozen=True):
    """What would be made; another spawn may have taken the id and the branch by then."""

    type: BuilderType
    id: str
    branch: str
    worktree: str
    prompt: str | None
    role: Annotated[str | None, Meta(description="The file that the system prompt is read from")]
    context_files: tuple[str, ...]
    protocol_args: dict[str, Any] | None
    runtime: str
    model: str | None
    base: str
    base_commit: str

    @classmethod
    def of(cls, farm: Farm, plan: Plan) -> PlanShown:
        config = config_of(farm, plan, free_name(farm, plan, farm.registry.read()))
        values = {name: getattr(config, name) for name in cls.__struct_fields__ if name != "base_commit"}
        plain: dict[str, Any] = {
            name: str(value) if isinstance(value, Path) else value for name, value in values.items()
        }
        return cls(**plain, base_commit=plan.start.base_commit)


class Spawned(Answer):
    builder: Annotated[BuilderShown | None, Meta(description="Null after a dry run")] = None
    plan: Annotated[PlanShown | None, Meta(description="Of a dry run")] = None
    notes: Annotated[tuple[str, ...], Meta(description="What is good to know of where it starts")] = ()


def _spawn(context: Context, request: Spawn) -> Spawned:
    plan = preflight(context, request)
    for note in plan.notes:
        context.tell(note)
    farm = context.farm
    if request.dry_run:
        return Spawned(plan=PlanShown.of(farm, plan), notes=plan.notes)
    return Spawned(builder=make_builder(farm, plan), notes=plan.notes)


SPAWN = Operation(
    "spawn",
    "Start a builder in its own worktree, branch and tmux session",
    Spawn,
    Spawned,
    single(_spawn),
    effect="changes",
    outside=True,
    pool="start",
    details="In exactly one mode: a task, a project (a spec), a protocol or a shell.",
)

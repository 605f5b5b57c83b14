"""`spawn`: start a builder in its own worktree, branch and tmux session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from agent_farm.builders.config import BuilderType
from agent_farm.errors import AgentFarmError, NotFound, UsageError, as_farm_error
from agent_farm.farm.base_commit import choose_start
from agent_farm.farm.farm import Farm
from agent_farm.farm.waiting import start_later
from agent_farm.operations.builders import failures_of
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, OfSeveral
from agent_farm.operations.shown import BuilderShown
from agent_farm.operations.spawn_plan import Plan, preflight
from agent_farm.operations.spawn_request import Spawn
from agent_farm.operations.spawn_reservation import config_of, free_name
from agent_farm.operations.spawn_steps import make_builder

if TYPE_CHECKING:
    from agent_farm.operations.spawn_several import Turn


class PlanShown(Struct, frozen=True):
    """What would be created; another spawn may take the id and the branch first."""

    type: BuilderType
    id: str
    branch: str
    worktree: str
    prompt: str | None
    role: Annotated[str | None, Meta(description="File that the system prompt is read from")]
    context_files: tuple[str, ...]
    protocol_args: dict[str, Any] | None
    runtime: str
    model: str | None
    base: str
    base_commit: str
    sparse: Annotated[tuple[str, ...], Meta(description="Directories of its sparse checkout")] = ()

    @classmethod
    def of(cls, farm: Farm, plan: Plan) -> PlanShown:
        config = config_of(farm, plan, free_name(farm, plan, farm.registry.read()))
        values = {name: getattr(config, name) for name in cls.__struct_fields__ if name != "base_commit"}
        plain: dict[str, Any] = {
            name: str(value) if isinstance(value, Path) else value for name, value in values.items()
        }
        return cls(**plain, base_commit=plan.start.base_commit)


class Spawned(OfSeveral):
    """`builder` or, after a dry run, `plan` for one; `builders`, `plans` and `failed` for several.

    One of several that could not be made has the id `task N`.
    """

    builder: Annotated[
        BuilderShown | None, Meta(description="Null after a dry run, and if several were requested")
    ] = None
    plan: Annotated[PlanShown | None, Meta(description="Of a dry run")] = None
    notes: Annotated[tuple[str, ...], Meta(description="Remarks about its base")] = ()
    builders: tuple[BuilderShown, ...] = ()
    plans: tuple[PlanShown, ...] = ()


class OneOfSeveral(Answer):
    spawned: Spawned


Part = Spawned | OneOfSeveral | Failure


def _collect(parts: Sequence[Part]) -> Spawned:
    if len(parts) == 1 and isinstance(parts[0], Spawned):
        return parts[0]
    several = [part.spawned for part in parts if isinstance(part, OneOfSeveral)]
    return Spawned(
        notes=tuple(dict.fromkeys(note for one in several for note in one.notes)),
        builders=tuple(one.builder for one in several if one.builder),
        plans=tuple(one.plan for one in several if one.plan),
        failed=failures_of(parts),
    )


@in_parts(
    "Start a builder in its own worktree, branch and tmux session",
    _collect,
    effect="changes",
    outside=True,
    pool="start",
    details="From a task, an issue, a project (a spec), a protocol or, as a shell, nothing; a project or an "
    "issue can be combined with a protocol. With tasks, copies or runtimes, starts several. If "
    "limits.max_builders are running already, a builder is `queued`, and starts when another one ends.",
)
def spawn(context: Context, request: Spawn) -> Iterator[Part]:
    """Of several, each is known to be possible before the first is made."""
    if (host := request.on or context.farm.settings.text("spawn.on")) not in (None, "local"):
        from agent_farm.operations.fleet.spawn_elsewhere import spawn_there

        yield from spawn_there(context, request, str(host))
        return
    if request.spec is not None and request.item == "all":
        yield from _each_item(context, request)
    elif not request.is_several:
        plan = preflight(context, request)
        _tell(context, (plan,))
        yield _carry_out(context, plan)
    else:
        from agent_farm.operations.spawn_several import carry_out_all, preflight_all

        plans = preflight_all(context, request)
        _tell(context, plans)
        for id, found in carry_out_all(partial(_carry_out, context), plans, context.farm.step):
            yield Failure.of(id, found) if isinstance(found, AgentFarmError) else OneOfSeveral(found)
    if not request.dry_run:
        start_later(context.farm)  # room may have become free while builders were queued


def _each_item(context: Context, request: Spawn) -> Iterator[Part]:
    """A builder for each open item, which waits for the work of those before it."""
    if request.is_several:
        raise UsageError(
            "--item all cannot be combined with --copies, --runtimes or --tasks",
            why="It makes several builders.",
            hint="af spawn --help",
        )
    from agent_farm.operations.spawn_items import each_item

    fetch = request.fetch or context.farm.settings.flag("spawn.fetch")
    tip = choose_start(context.farm, request.base, request.branch, fetch=fetch).tip
    made: dict[str, str] = {}
    items = each_item(context, request, tip)
    for number, item in enumerate(items, 1):
        context.farm.step("Spawning", number - 1, len(items))
        after = ",".join(made[key] for key in item.after if key in made) or request.after
        try:
            if len([key for key in item.after if key in made]) < len(item.after) and not request.dry_run:
                raise NotFound(
                    f"{item.key} waits for {', '.join(item.after)}, which could not all be spawned"
                )
            plan = preflight(context, replace(request, item=item.key, after=after))
            if number == 1:
                _tell(context, (plan,))
            if request.dry_run and item.after:
                context.tell(f"{item.key} starts once {', '.join(item.after)} has landed")
            found = _carry_out(context, plan)
        except (AgentFarmError, OSError) as problem:
            yield Failure.of(item.key, as_farm_error(problem))
            continue
        if found.builder:
            made[item.key] = found.builder.id
        yield OneOfSeveral(found)


def _carry_out(context: Context, plan: Plan, turn: Turn | None = None) -> Spawned:
    if plan.order.dry_run:
        return Spawned(plan=PlanShown.of(context.farm, plan), notes=plan.notes)
    if plan.work.source is None:
        return Spawned(builder=make_builder(context.farm, plan, turn=turn), notes=plan.notes)
    from agent_farm.operations.spawn_items import Claimed

    with Claimed(context.farm, plan.work):
        return Spawned(builder=make_builder(context.farm, plan, turn=turn), notes=plan.notes)


def _tell(context: Context, plans: Iterable[Plan]) -> None:
    for note in dict.fromkeys(note for plan in plans for note in plan.notes):
        context.tell(note)

"""Makes a builder that home places on this machine: from home's commit, under home's id and term."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct, structs

from agent_farm.builders.ids import Name
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.ref_names import is_branch_name
from agent_farm.disk import file_lock
from agent_farm.errors import UsageError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.fleet.terms import hold, read_terms, require_valid
from agent_farm.forge.issues import Issue
from agent_farm.launch import as_command
from agent_farm.operations.for_home.copied_builders import context_for_home, hold_or_undo
from agent_farm.operations.for_home.home_checkout import check_out
from agent_farm.operations.shown import show_builder
from agent_farm.operations.spawn import PlanShown, Spawned
from agent_farm.operations.spawn_plan import preflight
from agent_farm.operations.spawn_request import Spawn
from agent_farm.operations.spawn_steps import make_builder
from agent_farm.paths import is_builder_id


class Placement(Struct, frozen=True):
    """A builder to be made from `commit`: `base` is the branch to land on (None if there is none), and
    `base_commit` where it left that. `issue` and `role` were read at home."""

    id: str
    term: int
    branch: str
    commit: str
    base: str | None
    base_commit: str
    order: Spawn
    issue: Issue | None = None
    role: str | None = None


def placed(place: Path, asked: Placement, told: list[str]) -> Spawned:
    """Asking twice makes it once: the connection may have died before the answer."""
    if not is_builder_id(asked.id) or not is_branch_name(asked.branch):
        raise UsageError(f"{asked.id!r:.60} on {asked.branch!r:.60} cannot be a builder")
    has_role = asked.role is not None
    order = structs.replace(
        asked.order, base=asked.commit, on="local", role=None, no_role=has_role or asked.order.no_role
    )
    # held until the plan is made: another spawn would check out other settings
    with file_lock(place.with_name(f".{place.name}.lock"), inherit=True) as lock:
        check_out(place, asked.commit, lock)
        farm = open_farm(place, told.append)
        require_valid(read_terms(farm), asked.id, asked.term)
        if (there := farm.records().get(asked.id)) is not None:
            _require_same(farm, there, asked)
            hold(farm, asked.id, asked.term)
            return Spawned(builder=show_builder(farm, asked.id))
        if farm.repository.branch_commit(asked.branch) is not None:
            hint = as_command("git", "-C", place, "log", "-5", asked.branch)
            raise UsageError(f"There is a branch {asked.branch} in {place}", hint=hint)
        plan = preflight(context_for_home(farm, told), order, issue=asked.issue)
    name = Name(asked.id, asked.branch)
    base = f"home/{asked.base}" if asked.base else asked.base_commit
    start = structs.replace(plan.start, base=base, base_commit=asked.base_commit)
    plan = structs.replace(plan, start=start, work=structs.replace(plan.work, names=lambda: iter([name])))
    if has_role:
        plan = structs.replace(plan, role=farm.run(asked.id).role, role_text=asked.role)
    if order.dry_run:
        return Spawned(plan=PlanShown.of(farm, plan), notes=plan.notes)
    told += plan.notes
    made = make_builder(farm, plan)
    hold_or_undo(farm, asked.id, asked.term)
    return Spawned(builder=made, notes=plan.notes)


def _require_same(farm: Farm, there: BuilderRecord, asked: Placement) -> None:
    """It is what this call made when it was made before, and not one that home has forgotten since: ids, and
    the farm's name here, can come again. One without a term was made by a call that was killed then."""
    term = read_terms(farm).held.get(asked.id)
    if term == asked.term:
        return
    if term is None and (there.branch, there.base_commit) == (asked.branch, asked.base_commit):
        return
    prune = as_command(Path(sys.executable).with_name("af"), "prune", asked.id)
    raise UsageError(
        f"There is another builder {asked.id} in {farm.root}",
        why="It was made earlier. Nothing of it was changed.",
        hint=f"{as_command('cd', farm.root)} && {prune}",
    )

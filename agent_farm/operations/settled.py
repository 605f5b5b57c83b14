"""Removing a builder that was decided on: its work has landed, or that of another one was kept."""

from __future__ import annotations

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.guarded_removal import Waived, check, prune
from agent_farm.farm.listing import read_status
from agent_farm.landing.work import find_work
from agent_farm.launch import as_command
from agent_farm.operations.operation import Context
from agent_farm.operations.prune import Removal, WouldRemove

_AT_WORK = ("working", "preparing", "waiting", "limited")


class Settled(Struct, frozen=True):
    """`compared` are the commits at which it and others were compared, if another one is kept: all that it
    has goes then, into the trash. Else what has not landed stays."""

    id: str
    compared: dict[str, str] = {}
    dry_run: bool = False


def remove_settled(context: Context, record: BuilderRecord, asked: Settled) -> Removal | WouldRemove:
    """On the machine that it is on. Refused while it is at work, and once it has moved on."""
    farm = context.farm
    if farm.paths.fleet.exists():
        from agent_farm.operations.fleet.elsewhere import elsewhere_of  # of a fleet alone

        if elsewhere_of(farm, record.id):
            from agent_farm.operations.fleet.prune_elsewhere import remove_settled_there

            return remove_settled_there(context, asked)
    return remove_settled_here(farm, record, asked)


def remove_settled_here(farm: Farm, record: BuilderRecord, asked: Settled) -> Removal | WouldRemove:
    what, discard = f"{record.id} was not removed", bool(asked.compared)
    state = read_status(farm, record).state
    if state in _AT_WORK:
        words = ("stop",) if discard else ("prune", "--stop")
        raise AgentFarmError(what, why=f"It is {state}.", hint=as_command("af", *words, record.id))
    if discard and find_work(farm, record).work.tip != asked.compared.get(record.id):
        hint = as_command("af", "compare", *asked.compared)
        raise AgentFarmError(what, why="It has committed since it was compared.", hint=hint)
    waived = Waived(discard_changes=discard, discard_commits=discard, stop=True)
    if asked.dry_run:
        _, refused = check(farm, [record], waived)
        if record.id in refused:
            raise refused[record.id]
        return WouldRemove(id=record.id)
    return Removal.of(prune(farm, record, waived))

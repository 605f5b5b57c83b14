"""Removes a builder after a decision: its work has landed, or another builder's was kept instead."""

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


class RemoveDecided(Struct, frozen=True):
    """`compared`: if another builder is kept, the commits at which all were compared. Then everything this
    one has goes to the trash; otherwise, work that has not landed keeps it from being removed."""

    id: str
    compared: dict[str, str] = {}
    dry_run: bool = False


def remove_decided(context: Context, record: BuilderRecord, asked: RemoveDecided) -> Removal | WouldRemove:
    """Works on whichever machine it is. Refused while it is working, and if it has committed since."""
    farm = context.farm
    if farm.paths.fleet.exists():
        from agent_farm.operations.fleet.elsewhere import elsewhere_of  # only needed with a fleet

        if elsewhere_of(farm, record.id):
            from agent_farm.operations.fleet.prune_elsewhere import remove_decided_there

            return remove_decided_there(context, asked)
    return remove_decided_here(farm, record, asked)


def remove_decided_here(farm: Farm, record: BuilderRecord, asked: RemoveDecided) -> Removal | WouldRemove:
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

"""How many builders may be there at once: `limits.max_builders`."""

from __future__ import annotations

from agent_farm.builders.registry import Records
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses


def require_room(farm: Farm, records: Records) -> None:
    """AgentFarmError when as many builders run as may; ask under the registry's lock.

    One that is being created or cannot be asked counts: it may be running. Ended ones take no room.
    """
    limit = farm.settings.number("limits.max_builders")
    if not limit or len(records) < limit:
        return
    statuses = read_statuses(farm, list(records.values()))
    running = [id for id, status in statuses.items() if not status.is_finished]
    if len(running) >= limit:
        others = len(records) - len(running)
        raise AgentFarmError(
            f"{len(running)} builder{'s run' if len(running) != 1 else ' runs'}, "
            f"and limits.max_builders is {limit}",
            why=f"{others} that ended or {'was' if others == 1 else 'were'} stopped "
            f"{'does' if others == 1 else 'do'} not count."
            if others
            else None,
            hint=f"af stop {running[0]}" if len(running) == 1 else "af status",
        )

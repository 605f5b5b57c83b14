"""When the farm's server is of no use to anybody, so that it may end itself."""

from __future__ import annotations

from pathlib import Path

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import open_farm
from agent_farm.farm.listing import read_statuses
from agent_farm.server.activity import Activity
from agent_farm.sessions.running_butlers import RunningButlers
from agent_farm.settings import load_settings


def idle_limit(root: Path) -> float | None:
    """The seconds after which it ends when nothing has happened; None: it stays."""
    return float(load_settings(root).number("server.idle_seconds")) or None


def is_idle(butlers: RunningButlers, activity: Activity) -> bool:
    """Nobody has asked for so long, no page is open, nothing runs, waits or may become due. Blocks.

    What cannot be read may be wanted.
    """
    try:
        limit = idle_limit(butlers.root)
        if limit is None or activity.quiet_seconds < limit or butlers.has_work():
            return False
        return not _has_builders(butlers.root) and activity.quiet_seconds >= limit
    except (AgentFarmError, OSError):
        return False


def _has_builders(root: Path) -> bool:
    farm = open_farm(root)
    records = list(farm.records().values())
    if any(record.state == "creating" for record in records):
        return True
    return any(not status.is_finished for status in read_statuses(farm, records).values())

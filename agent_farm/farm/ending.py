"""The end of a builder's run: its session, its processes, and what of its environment is on disk."""

from __future__ import annotations

import json
from contextlib import suppress

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import stale_temporaries
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.farm import Farm
from agent_farm.farm.panes import find_pane, not_asked
from agent_farm.own_files import read_own
from agent_farm.pane.launchfile import NotLaunchable, forget_environment
from agent_farm.paths import RunPaths
from agent_farm.processes import end_run
from agent_farm.tmux.foreground import foreground_group
from agent_farm.tmux.snapshot import PaneFacts


def end_processes(farm: Farm, record: BuilderRecord) -> None:
    """Close the session, which lets the launcher end the runtime; then make sure that nothing is left."""
    found = find_pane(record)
    if not found.known:
        raise not_asked(record, found.reason)
    if found.pane is not None:
        found.server.kill_session(found.pane.session_id)  # returns when the launcher is gone
    end_left(record)
    forget_secrets(farm.run(record.id))


def end_left(record: BuilderRecord) -> None:
    """What is left of a run that nobody keeps any more."""
    left = end_run(record.run)
    if left:
        raise AgentFarmError(
            f"Processes of {record.id} did not end", why=f"pid {', '.join(map(str, left))}", hint="af doctor"
        )


def program_in_shell(pane: PaneFacts | None) -> str | None:
    """What somebody runs in the shell that an ended runtime left, None when the shell just waits."""
    if pane is None or pane.dead:
        return None
    group = foreground_group(pane.pid)
    return None if group in (None, pane.pid) else pane.command


def has_secrets(run: RunPaths) -> bool:
    """A kill left values of the environment in `launch.json`, or in a copy of it that was never renamed."""
    if stale_temporaries(run.directory):
        return True
    try:
        document = json.loads(read_own(run.launch))
        return isinstance(document, dict) and document.get("env") is not None
    except (OSError, ValueError, RecursionError, DamagedFile):
        return False


def forget_secrets(run: RunPaths) -> None:
    """Only for a builder whose launcher is gone, which forgets them itself; the next start writes others."""
    for path in stale_temporaries(run.directory):
        path.unlink(missing_ok=True)
    if has_secrets(run):
        with suppress(NotLaunchable, OSError):  # a full disk: doctor tells of it
            forget_environment(run.directory)

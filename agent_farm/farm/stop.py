"""`af stop`: the runtime ends, the work stays."""

from __future__ import annotations

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.left_secrets import forget_secrets
from agent_farm.farm.listing import read_status
from agent_farm.farm.locks import hold
from agent_farm.farm.own_events import note
from agent_farm.farm.panes import find_pane, not_asked
from agent_farm.processes import end_run
from agent_farm.tmux.foreground import foreground_group
from agent_farm.tmux.snapshot import PaneFacts


def stop(farm: Farm, record: BuilderRecord) -> BuilderRecord:
    """End the builder's runtime and its session; its worktree, branch and conversation stay."""
    with hold(farm, record.id) as record:
        status = read_status(farm, record)
        if status.state == "unknown" and not find_pane(record).known:
            raise not_asked(record, status.reason)  # unlike a runtime that lives without its tmux server
        if not status.is_finished:  # how a runtime ended by itself stays on record
            record = _mark_stopped(farm, record)
        end_processes(farm, record)
        note(farm, record, "stopped")
        return record


def _mark_stopped(farm: Farm, record: BuilderRecord) -> BuilderRecord:
    return farm.registry.put(record.with_state("stopped", "by af stop"))


def program_in_shell(pane: PaneFacts | None) -> str | None:
    """What somebody runs in the shell that an ended runtime left, None when the shell just waits."""
    if pane is None or pane.dead:
        return None
    group = foreground_group(pane.pid)
    return None if group in (None, pane.pid) else pane.command


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

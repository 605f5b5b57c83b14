"""Ends a builder's run: its session, its processes, and the part of its environment that is on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import stale_temporaries
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.farm import Farm
from agent_farm.farm.panes import Found, find_panes, not_asked
from agent_farm.own_files import read_own
from agent_farm.pane.launchfile import NotLaunchable, forget_environment
from agent_farm.paths import RunPaths
from agent_farm.processes import end_runs
from agent_farm.tmux.foreground import foreground_group
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.snapshot import PaneFacts


def end_processes(farm: Farm, records: Sequence[BuilderRecord]) -> dict[str, AgentFarmError]:
    """Close the sessions, so that launchers end the runtimes; then make sure that nothing is left.

    All end side by side. Returns what did not end, by builder.
    """
    found = find_panes(records)
    problems = {one.id: not_asked(one, found[one.id].reason) for one in records if not found[one.id].known}
    for server in {one.server for one in found.values()}:
        panes = {id: one.pane for id, one in found.items() if one.server == server and one.pane is not None}
        if panes:  # returns when the launchers are gone
            problems |= _closed(farm, server, panes)
    ended = [record for record in records if record.id not in problems]
    problems |= end_left(ended)
    for record in ended:
        if record.id not in problems:
            forget_secrets(farm.run(record.id))
    return problems


def _closed(farm: Farm, server: TmuxServer, panes: Mapping[str, PaneFacts]) -> dict[str, AgentFarmError]:
    try:
        failed = server.kill_sessions(panes.values(), step=partial(farm.step, "Ending"))
    except AgentFarmError as error:
        return dict.fromkeys(panes, error)
    return {id: failed[pane.session_id] for id, pane in panes.items() if pane.session_id in failed}


def end_left(records: Sequence[BuilderRecord]) -> dict[str, AgentFarmError]:
    """End what is left of runs without a keeper; returns the processes that did not end, by builder."""
    left = end_runs([record.run for record in records])
    return {
        record.id: AgentFarmError(
            f"Processes of {record.id} did not end",
            why=f"pid {', '.join(map(str, left[record.run]))}",
            hint="af doctor",
        )
        for record in records
        if record.run in left
    }


def program_in_session(found: Found) -> str | None:
    """What somebody runs in the shell that an ended runtime left, or beside it; None if shells just wait."""
    if (pane := found.pane) is None:
        return None
    group = None if pane.dead else foreground_group(pane.pid)
    if group not in (None, pane.pid):
        return "this af" if group == os.getpgrp() else pane.command
    return found.server.program_beside(pane)


def has_secrets(run: RunPaths) -> bool:
    """Whether a kill left environment values in `launch.json`, or in a copy of it that was never renamed."""
    if stale_temporaries(run.directory):
        return True
    try:
        document = json.loads(read_own(run.launch))
        return isinstance(document, dict) and document.get("env") is not None
    except (OSError, ValueError, RecursionError, DamagedFile):
        return False


def forget_secrets(run: RunPaths) -> None:
    """Only for a builder whose launcher is gone, which normally does this; the next start writes others."""
    for path in stale_temporaries(run.directory):
        path.unlink(missing_ok=True)
    if has_secrets(run):
        with suppress(NotLaunchable, OSError):  # on a full disk, doctor reports it
            forget_environment(str(run.directory))

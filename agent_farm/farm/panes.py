"""Where builders run: each on the tmux server it was started on, which need not be this terminal's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import PaneView
from agent_farm.errors import AgentFarmError
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.snapshot import PaneFacts


@dataclass(frozen=True, slots=True)
class Found:
    """A builder's pane on its server. Without `known` nothing is said about whether it is there."""

    server: TmuxServer
    known: bool
    pane: PaneFacts | None = None
    reason: str | None = None

    @property
    def view(self) -> PaneView:
        return PaneView(
            self.known, self.pane is not None, self.pane is not None and self.pane.dead, self.reason
        )


def find_panes(records: Iterable[BuilderRecord]) -> dict[str, Found]:
    """By builder id; one call for each tmux server in use."""
    chosen = list(records)
    servers = {record.socket: TmuxServer(record.socket) for record in chosen}
    snapshots = {socket: server.panes() for socket, server in servers.items()}
    found = {}
    for record in chosen:
        snapshot = snapshots[record.socket]
        pane = snapshot.panes.get(record.session)
        found[record.id] = Found(servers[record.socket], snapshot.known, pane, snapshot.reason)
    return found


def find_pane(record: BuilderRecord) -> Found:
    return find_panes([record])[record.id]


def require_pane(record: BuilderRecord) -> tuple[TmuxServer, PaneFacts]:
    """The builder's pane and its server, or an error that says how to get one."""
    found = find_pane(record)
    if found.pane is not None:
        return found.server, found.pane
    if not found.known:
        raise AgentFarmError("tmux could not be asked", why=found.reason)
    raise AgentFarmError(
        f"{record.id} has no tmux session",
        why=f"It is {'stopped' if record.state == 'stopped' else 'lost'}; its work is in {record.worktree}.",
        hint=f"af resume {record.id}",
    )

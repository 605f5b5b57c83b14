"""Finds builders' panes, each on the tmux server where it was started, which may not be this terminal's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import PaneView, Status
from agent_farm.errors import AgentFarmError
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.snapshot import PaneFacts, Snapshot

# A CLI at work keeps writing to its pane, if only to turn a spinner.
STALE_SECONDS = 4.0


class Found(Struct, frozen=True):
    """A builder's pane on its server. Unless `known`, nothing is said about whether it exists."""

    server: TmuxServer
    known: bool
    pane: PaneFacts | None = None
    reason: str | None = None

    @property
    def view(self) -> PaneView:
        return PaneView(
            self.known, self.pane is not None, self.pane is not None and self.pane.dead, self.reason
        )

    def may_be_stale(self, status: Status, now: float) -> bool:
        """Whether a turn runs or a hook reported a dialog, and nothing was reported for a while since."""
        if self.pane is None or self.pane.dead or now - (status.at or now) < STALE_SECONDS:
            return False
        return status.state == "working" or (status.state == "waiting" and status.source == "hook")


def find_panes(records: Iterable[BuilderRecord], *, seconds: float | None = None) -> dict[str, Found]:
    """By builder id; one call for each tmux server in use, all at once."""
    chosen = list(records)
    servers = {record.socket: TmuxServer(record.socket) for record in chosen}
    snapshots = _snapshots(servers, seconds)
    found = {}
    for record in chosen:
        snapshot = snapshots[record.socket]
        pane = snapshot.panes.get(record.session)
        found[record.id] = Found(servers[record.socket], snapshot.known, pane, snapshot.reason)
    return found


def _snapshots(servers: Mapping[str, TmuxServer], seconds: float | None) -> dict[str, Snapshot]:
    if len(servers) < 2:
        return {socket: server.panes(seconds=seconds) for socket, server in servers.items()}
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(servers)) as threads:
        asked = threads.map(lambda server: server.panes(seconds=seconds), servers.values())
        return dict(zip(servers, asked, strict=True))


def find_pane(record: BuilderRecord) -> Found:
    return find_panes([record])[record.id]


def not_asked(record: BuilderRecord, why: str | None) -> AgentFarmError:
    """A builder that could not be asked about is not gone."""
    return AgentFarmError(f"tmux could not be asked about {record.id}", why=why, hint="af doctor")


def require_pane(record: BuilderRecord) -> tuple[TmuxServer, PaneFacts]:
    """The builder's pane and its server, or an error that says how to get one."""
    if record.state == "queued":
        record.require_begun()
    found = find_pane(record)
    if found.pane is not None:
        return found.server, found.pane
    if not found.known:
        raise not_asked(record, found.reason)
    raise AgentFarmError(
        f"{record.id} has no tmux session",
        why=f"It is {'stopped' if record.state == 'stopped' else 'lost'}; its work is in {record.worktree}.",
        hint=f"af resume {record.id}",
    )

"""A tmux server, as the rest of the farm sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_farm.errors import AgentFarmError
from agent_farm.tmux.client import call_tmux, install_command
from agent_farm.tmux.snapshot import LIST_PANES, Snapshot, read_snapshot
from agent_farm.tmux.start import PaneAddress, start_session

_OLDEST = (3, 3)


@dataclass(frozen=True, slots=True)
class TmuxServer:
    """`socket`: None for the server that `tmux` itself would choose, a name (-L), or a path (-S)."""

    socket: str | None = None

    @classmethod
    def chosen(cls, setting: str | None, environ: Mapping[str, str]) -> TmuxServer:
        return cls(environ.get("AF_TMUX_SOCKET") or setting or None)

    def problem(self) -> str | None:
        """None, or why tmux cannot be used here and what to do."""
        try:
            answer = call_tmux(None, (("-V",),))
        except AgentFarmError as error:
            return f"{error.what}: {error.hint or error.why}"
        version = re.search(r"(\d+)\.(\d+)", answer.out)
        if version and (int(version[1]), int(version[2])) < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            return f"{answer.out.strip()} is older than {oldest}: {install_command()}"
        return None

    def start_session(
        self, name: str, argv: Sequence[str], *, cwd: Path, columns: int = 200, rows: int = 50
    ) -> PaneAddress:
        """One tmux call; the program is executed directly, with `cwd` as its working directory."""
        return start_session(self.socket, name, argv, cwd=cwd, columns=columns, rows=rows)

    def panes(self) -> Snapshot:
        """Every builder's pane, from one call."""
        return read_snapshot(call_tmux(self.socket, (LIST_PANES,)))

"""A tmux server, as the rest of the farm uses it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_farm.errors import AgentFarmError
from agent_farm.tmux.tmux_process import QUESTION_SECONDS, ask_tmux, socket_path, tmux_argv

if TYPE_CHECKING:
    from agent_farm.tmux.snapshot import PaneFacts, Snapshot
    from agent_farm.tmux.start import PaneAddress


class TmuxServer(Struct, frozen=True):
    """`socket`: None for the server that `tmux` itself would choose, a name (-L), or a path (-S)."""

    socket: str | None = None

    def path(self, environ: Mapping[str, str]) -> str:
        """The socket's path, by which the same server is found from every terminal."""
        return socket_path(self.socket, environ)

    def start_session(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: Path,
        window: str = "builder",
        columns: int = 200,
        rows: int = 50,
    ) -> PaneAddress:
        """One tmux call; the program is executed directly, with `cwd` as its working directory."""
        from agent_farm.tmux.start import start_session  # each method only needs one

        return start_session(self.socket, name, argv, window=window, cwd=cwd, columns=columns, rows=rows)

    def version(self) -> str | None:
        """That of the server; None without one."""
        answer = ask_tmux(self.socket, (("display-message", "-p", "#{version}"),))
        return None if answer.code else answer.out.strip()

    def panes(self, *, seconds: float | None = None) -> Snapshot:
        """Every builder's pane, from one call that takes at most `seconds`."""
        from agent_farm.tmux.snapshot import LIST_PANES, read_snapshot

        bound = min(seconds or QUESTION_SECONDS, QUESTION_SECONDS)
        return read_snapshot(ask_tmux(self.socket, (LIST_PANES,), seconds=bound))

    def sessions_below(self, place: Path) -> tuple[str, ...]:
        """All sessions with a pane whose program is in that directory, whoever made them."""
        from agent_farm.tmux.snapshot import SEPARATOR

        form = f"#{{session_name}}{SEPARATOR}#{{pane_current_path}}"
        rows = ask_tmux(self.socket, (("list-panes", "-a", "-F", form),)).out.split("\n")
        found = [(name, path) for name, _, path in (row.partition(SEPARATOR) for row in rows) if path]
        return tuple(dict.fromkeys(name for name, path in found if Path(path).is_relative_to(place)))

    def program_beside(self, pane: PaneFacts) -> str | None:
        """A program that somebody runs in another pane of its session."""
        from agent_farm.tmux.panes_beside import program_beside

        return program_beside(self.socket, pane)

    def capture(self, pane_id: str, *, history: int = 0, escapes: bool = False) -> str:
        """The screen, and up to `history` lines above it."""
        from agent_farm.tmux.capturing import capture_history, capture_screen

        if history:
            return capture_history(self.socket, pane_id, history, escapes=escapes)
        return capture_screen(self.socket, pane_id, escapes=escapes)

    def capture_many(self, pane_ids: Sequence[str], *, escapes: bool = False) -> dict[str, str]:
        """The screens of all panes that exist, from one call."""
        from agent_farm.tmux.capturing import capture_screens

        return capture_screens(self.socket, pane_ids, escapes=escapes)

    def kill_session(self, pane: PaneFacts, *, seconds: float = 8.0) -> None:
        """Returns when its session, panes and launchers are gone, even if they were gone before."""
        for error in self.kill_sessions([pane], seconds=seconds).values():
            raise error

    def kill_sessions(
        self,
        panes: Collection[PaneFacts],
        *,
        seconds: float = 8.0,
        step: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, AgentFarmError]:
        """`kill_session` for many side by side; returns what went wrong, by session."""
        from agent_farm.tmux.session_end import kill_sessions

        return kill_sessions(self.socket, panes, seconds=seconds, step=step)

    def attach_argv(self, session: str, *, read_only: bool = False) -> tuple[str, ...]:
        """For a terminal that is not inside tmux; `session` is an id or an exact name."""
        flags = ("-r",) if read_only else ()
        return (*tmux_argv(self.socket), "attach-session", *flags, "-t", _exactly(session))

    def switch_client_argv(self, session: str, *, read_only: bool = False) -> tuple[str, ...]:
        """For a terminal that already shows this server."""
        flags = ("-r",) if read_only else ()
        return (*tmux_argv(self.socket), "switch-client", *flags, "-t", _exactly(session))

    def is_around(self, environ: Mapping[str, str]) -> bool:
        """Whether the caller is in a pane of this very server, so that its client can be switched."""
        outer = environ.get("TMUX", "").split(",")[0]
        if not outer:
            return False
        answer = ask_tmux(self.socket, (("display-message", "-p", "#{socket_path}"),))
        return answer.code == 0 and Path(answer.out.strip()).resolve() == Path(outer).resolve()


def _exactly(session: str) -> str:
    return session if session.startswith("$") else f"={session}"

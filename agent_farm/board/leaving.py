"""Lending the board's terminal to a builder's tmux session, an editor or a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import open_farm
from agent_farm.farm.panes import require_pane
from agent_farm.operations.shown import BuilderShown
from agent_farm.tmux.way_back import show_way_back


def attach(app: App[Any], root: Path, builder: BuilderShown) -> str | None:
    """Returns when the person detaches; on the tmux server around this terminal, its client is switched."""
    if builder.host:
        _elsewhere(app, root, builder, "attach", "--from-board")
        return None
    server, pane = require_pane(builder)
    inside = server.is_around(os.environ)
    with show_way_back(server.socket, pane.session_id, switched=inside):
        if inside:
            _run(server.switch_client_argv(pane.session_id))
            return f"Switched to {builder.id}; prefix L comes back"
        environ = {name: value for name, value in os.environ.items() if name != "TMUX"}
        with app.suspend():
            _run(server.attach_argv(pane.session_id), env=environ)
    return None


def edit(app: App[Any], worktree: str) -> None:
    with app.suspend():
        _run([*_editor(), "."], cwd=worktree)


def edit_text(app: App[Any], text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="af-task-") as place:
        file = Path(place) / "task.md"
        file.write_text(text)
        with app.suspend():
            _run([*_editor(), str(file)])
        return file.read_text(errors="replace").strip()


def _editor() -> list[str]:
    words = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        return shlex.split(words)
    except ValueError as error:
        raise AgentFarmError(f"VISUAL or EDITOR is not a command: {words}", why=str(error)) from None


def shell(app: App[Any], root: Path, builder: BuilderShown) -> None:
    if builder.host:
        _elsewhere(app, root, builder, "shell")
        return
    with app.suspend():
        _run([os.environ.get("SHELL") or "/bin/sh"], cwd=builder.worktree)


def _elsewhere(app: App[Any], root: Path, builder: BuilderShown, *words: str) -> None:
    """Runs `af` on the builder's machine, over ssh."""
    from agent_farm.fleet.book import read_book
    from agent_farm.fleet.calling import terminal_argv

    argv = terminal_argv(read_book(open_farm(root)), str(builder.host), *words, id=builder.id)
    with app.suspend():
        status = _run(argv)
    if status:
        raise AgentFarmError(
            f"The terminal of {builder.id} on {builder.host} could not be shown",
            why=f"ssh ended with {status}.",
            hint=f"af attach {builder.id}",
        )


def _run(argv: Sequence[str], **where: Any) -> int:
    try:
        return subprocess.run(argv, check=False, **where).returncode
    except OSError as error:
        raise AgentFarmError(f"{argv[0]} cannot be run", why=str(error)) from error

"""A builder's run directory and worktree, started in a real pane by the real launcher."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_farm.pane.pane_argv import launcher_argv
from agent_farm.tmux.foreground import is_running
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.start import PaneAddress
from tests.tmux.stage import tmux
from tests.waiting import wait_until

PROGRAMS = str(Path(__file__).with_name("programs.py"))
SESSION = "af-farm-task-1"


def notice(*argv: str, on: tuple[str, ...] = ("waiting", "exited", "failed")) -> dict[str, Any]:
    """`notify` of launch.json."""
    return {"argv": list(argv), "on": list(on), "env": {"PATH": os.environ["PATH"]}, "names": []}


@dataclass
class Stage:
    root: Path
    address: PaneAddress | None = None
    server: TmuxServer = field(default_factory=TmuxServer)

    def __post_init__(self) -> None:
        self.run = self.root / "run"
        self.worktree = self.root / "tree"
        self.run.mkdir(mode=0o700)
        self.worktree.mkdir()

    def start(self, *argv: str, **launch: Any) -> PaneAddress:
        self.write_launch(*argv, **launch)
        self.address = self.server.start_session(SESSION, launcher_argv(SESSION, self.run), cwd=self.worktree)
        return self.address

    def start_program(self, what: str, **launch: Any) -> PaneAddress:
        return self.start(sys.executable, "-I", PROGRAMS, what, str(self.facts_file), **launch)

    def write_launch(self, *argv: str, **launch: Any) -> None:
        content = {
            "version": 1,
            "builder": "task-1",
            "run": "abcdef012345",
            "runtime": "demo",
            "worktree": str(self.worktree),
            "cwd": str(self.worktree),
            "argv": argv,
            "env": {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PS1": "shell> "},
            "scratch": None,
            "copies": [],
            "setup": None,
            "shell": ["/bin/sh", "-i"],
            "notify": None,
            "at_end": None,
            "hooks": {},
        }
        file = self.run / "launch.json"
        file.touch(0o600)
        file.write_text(json.dumps(content | launch))

    @property
    def facts_file(self) -> Path:
        return self.root / "facts"

    def facts(self) -> dict[str, Any]:
        wait_until(self.facts_file.exists, what="the program")
        return dict(json.loads(self.facts_file.read_text()))

    def events(self) -> list[dict[str, Any]]:
        file = self.run / "events.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def states(self) -> list[str]:
        return [event["state"] for event in self.events() if event["state"]]

    def wait_for_end(self) -> dict[str, Any]:
        return wait_until(
            lambda: next((e for e in self.events() if e["state"] in ("exited", "failed")), None),
            what="the end",
        )

    def exit(self) -> dict[str, Any]:
        self.wait_for_end()
        return dict(json.loads((self.run / "exit.json").read_text()))

    def pane_pid(self) -> int:
        assert self.address
        return int(tmux("display-message", "-p", "-t", self.address.pane_id, "#{pane_pid}"))

    def processes(self) -> dict[str, int]:
        return dict(json.loads((self.run / "processes.json").read_text()))

    def left_by(self, what: str) -> int:
        """The process id that a program wrote down for its child or its loner."""
        file = self.root / what
        return int(wait_until(lambda: file.exists() and file.read_text(), what=what))

    def screen(self) -> str:
        assert self.address
        return self.server.capture(self.address.pane_id)

    def wait_for_shell(self) -> None:
        wait_until(lambda: self.screen().rstrip().endswith("shell>"), what="the shell")

    def type(self, *keys: str) -> None:
        assert self.address
        tmux("send-keys", "-t", self.address.pane_id, *keys)


def wait_gone(pid: int) -> None:
    wait_until(lambda: not is_running(pid), what=f"the end of {pid}")

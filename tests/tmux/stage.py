"""A pane with the receiver in it, and the files around a delivery."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.tmux.deliverable import Delivery
from agent_farm.tmux.delivery import Pace, deliver
from agent_farm.tmux.screen import ScreenRules
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.start import PaneAddress
from tests.waiting import wait_until

RULES = ScreenRules(ready=r"^rx>\s*$", draft=r"^rx> +\S", dialog=r"^rx\? ")
QUICK = Pace(lock=20, ready=0.3, draft=0.1, paste=1, confirm=3, event=0.5, again=0.4)
RECEIVER = Path(__file__).with_name("receiver.py")


def tmux(*words: str) -> str:
    done = subprocess.run(["tmux", "-u", *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


@dataclass
class Stage:
    server: TmuxServer
    address: PaneAddress
    file: Path
    lock: Path

    def send(self, text: str, *, event: bool = True, rules: ScreenRules = RULES, **more: object) -> Delivery:
        watch = {"watch": self.watch} if event else {}
        arguments: dict[str, Any] = {"lock": self.lock, "screen": rules, "pace": QUICK, **watch, **more}
        return deliver(self.server.socket, self.address.pane_id, text, **arguments)

    def watch(self) -> Callable[[], bool]:
        before = len(self.messages())
        return lambda: len(self.messages()) > before

    def messages(self) -> list[bytes]:
        """Those written whole."""
        text = self.file.read_text() if self.file.exists() else ""
        return [bytes.fromhex(line) for line in text.split("\n")[:-1]]

    def screen(self) -> str:
        return self.server.capture(self.address.pane_id)

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.screen(), what=f"{text!r} on the screen")


def start_receiver(directory: Path, *options: str) -> Stage:
    file = directory / "messages"
    server = TmuxServer()
    argv = (sys.executable, "-I", str(RECEIVER), str(file), *options)
    stage = Stage(server, server.start_session("af-rx-1", argv, cwd=directory), file, directory / "lock")
    stage.wait_for("welcome")
    return stage

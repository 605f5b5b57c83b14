"""A runtime in a real pane, under the real launcher, on the test's own tmux server."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from msgspec.structs import replace

from agent_farm.farm.runtime_start import TOOLS_SECONDS
from agent_farm.pane.journal import digest_of_prompt
from agent_farm.pane.pane_argv import await_tools_argv, launcher_argv, report_argv
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.plain_text import as_text
from agent_farm.tmux.deliverable import Delivery
from agent_farm.tmux.delivery import deliver
from agent_farm.tmux.screen import ScreenRules
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.tmux_process import call_tmux
from tests.runtimes.ptys import write_launch_files
from tests.runtimes.screens import label_of
from tests.waiting import wait_until

SESSION = "af-test-pane"


@dataclass
class Pane:
    """One start of a runtime; `events` are those of this run."""

    tmux: TmuxServer
    pane_id: str
    order: Start
    adapter: RuntimeAdapter

    @property
    def screen(self) -> str:
        return self.tmux.capture(self.pane_id)

    @property
    def label(self) -> str:
        return label_of(self.tmux.capture(self.pane_id, escapes=True), self.adapter.cli.screen)

    @property
    def events(self) -> list[dict[str, Any]]:
        file = self.order.place / "events.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [event for event in map(json.loads, lines) if event["run"] == self.order.run]

    @property
    def states(self) -> list[str]:
        """The states in order, repetitions left out."""
        found: list[str] = []
        for event in self.events:
            if event["state"] and (not found or found[-1] != event["state"]):
                found.append(event["state"])
        return found

    @property
    def conversation_id(self) -> str | None:
        known = [event["conversation_id"] for event in self.events if event.get("conversation_id")]
        return known[-1] if known else None

    def wait_for_state(self, state: str, *, after: int = 0, timeout: float = 120) -> dict[str, Any]:
        """The newest event, once it (with a state, and beyond the first `after` events) says `state`."""

        def reached() -> dict[str, Any] | None:
            told = [event for event in self.events[after:] if event["state"]]
            return told[-1] if told and told[-1]["state"] == state else None

        return self._wait(reached, timeout, f"the state {state}")

    def wait_for_screen(self, text: str, *, timeout: float = 120) -> str:
        return self._wait(lambda: self.screen if text in self.screen else None, timeout, repr(text))

    def wait_for_dialog(self) -> None:
        self._wait(lambda: self.label == "dialog", 120, "a dialog")

    def accept_dialog(self) -> None:
        """Enter, again while the dialog stays: codex drops keys that come as it opens one."""
        self.wait_for_dialog()
        for _ in range(20):
            self.press("Enter")
            with suppress(AssertionError):
                wait_until(lambda: self.label != "dialog", what="the dialog to close", timeout=1)
                return
        raise AssertionError(f"the dialog stays:\n{self.screen}")

    def send(self, text: str) -> Delivery:
        rules = self.adapter.cli.screen
        event, typed = self.adapter.cli.hooks.submitted, as_text(text, self.adapter.cli.own_words)
        said = digest_of_prompt(typed)

        def watch() -> Callable[[], bool]:
            before = len(self.events)
            wanted = (event, said)
            return lambda: (
                wanted in [(e["event"], e.get("detail", {}).get("said")) for e in self.events[before:]]
            )

        return deliver(
            self.tmux.socket,
            self.pane_id,
            typed,
            lock=self.order.place / "delivery.lock",
            screen=ScreenRules(ready=rules.ready, draft=rules.draft, dialog=rules.dialog),
            watch=watch if event else None,
            runtime_pid=self.runtime_pid,
        )

    @property
    def runtime_pid(self) -> int:
        return int(json.loads((self.order.place / "processes.json").read_text())["runtime"])

    def press(self, *keys: str) -> None:
        subprocess.run(["tmux", "send-keys", "-t", self.pane_id, *keys], check=True, timeout=60)

    def processes(self) -> list[psutil.Process]:
        """The launcher and everything below it."""
        launcher = int(json.loads((self.order.place / "processes.json").read_text())["launcher"])
        try:
            parent = psutil.Process(launcher)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _wait(self, condition: Callable[[], Any], timeout: float, what: str) -> Any:
        try:
            return wait_until(condition, timeout=timeout, what=what)
        except AssertionError as error:
            told = [(event["event"], event["state"]) for event in self.events]
            raise AssertionError(f"{error}\nevents: {told}\nscreen:\n{self.screen}") from None


@contextmanager
def pane_of(adapter: RuntimeAdapter, order: Start, *, stop: bool = True) -> Iterator[Pane]:
    """Start the order in a pane as the farm does."""
    launch = adapter.interactive(order)
    write_launch_files(launch)
    document = {
        "version": 1,
        "builder": order.builder,
        "run": order.run,
        "runtime": adapter.name,
        "worktree": str(order.top),
        "cwd": str(launch.cwd),
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "scratch": str(launch.scratch) if launch.scratch else None,
        "copies": [],
        "setup": None,
        "shell": ["/bin/bash", "--norc", "-i"],
        "notify": None,
        "at_end": None,
        "hooks": adapter.cli.hooks_to_json(prompted=order.prompt is not None),
    }
    (order.place / "launch.json").write_text(json.dumps(document))
    tmux = TmuxServer()
    address = tmux.start_session(SESSION, launcher_argv(SESSION, order.place), cwd=order.top)
    try:
        yield Pane(tmux, address.pane_id, order, adapter)
    finally:
        if stop and (shown := tmux.panes().panes.get(SESSION)):
            tmux.kill_session(shown, seconds=120)


def seconds_alone(adapter: RuntimeAdapter, order: Start) -> float:
    """From the start to the input line of the same program with no farm around it: no launcher, no hooks."""
    launch = adapter.interactive(replace(order, report=("true",)))
    write_launch_files(launch)
    words = [f"{name}={value}" for name, value in {**launch.env, "TERM": "tmux-256color"}.items()]
    tmux, begun = TmuxServer(), time.monotonic()
    address = tmux.start_session(SESSION, ["env", "-i", *words, *launch.argv], cwd=launch.cwd)
    try:
        wait_until(
            lambda: label_of(tmux.capture(address.pane_id, escapes=True), adapter.cli.screen) == "ready",
            what=f"the input line of {adapter.name} alone",
            timeout=60,
        )
        return time.monotonic() - begun
    finally:
        call_tmux(tmux.socket, (("kill-session", "-t", address.session_id),))


def pane_order(adapter: RuntimeAdapter, root: Path, worktree: Path, **given: Any) -> Start:
    """An order as the farm makes it; `env` adds to what is allowed."""
    run_directory = root / "run"
    run_directory.mkdir(exist_ok=True, mode=0o700)
    run = os.urandom(6).hex()
    if given.get("prompt") is not None:
        given["prompt_file"] = run_directory / "prompt.md"
        given["prompt_file"].write_bytes(given["prompt"].encode())
    env = {**allowed_environment(os.environ), **given.pop("env", {})}
    return Start(
        mode="pane",
        builder="task-a7f3-x9k2",
        run=run,
        home=run_directory,
        place=run_directory,
        top=worktree,
        cwd=given.pop("cwd", worktree),
        env=env,
        report=report_argv(run_directory, run, json_reply=adapter.cli.hooks.wants_reply),
        await_tools=await_tools_argv(run_directory, run, TOOLS_SECONDS),
        **given,
    )

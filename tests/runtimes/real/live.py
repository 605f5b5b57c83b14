"""A builder of a real CLI through `af`, and what is seen of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.conftest import Af
from tests.runtimes.real.clis import Cli
from tests.runtimes.screens import label_of
from tests.waiting import wait_until


@dataclass
class Live:
    """One spawned builder; `told` is its state and where that is from."""

    af: Af
    cli: Cli
    id: str
    env: dict[str, str]

    @property
    def status(self) -> dict[str, str]:
        listed = json.loads(self.af("status", self.id, "--json", env=self.env).stdout)["builders"]
        return dict(listed[0]["status"])

    @property
    def told(self) -> tuple[str, str]:
        return self.status["state"], self.status["source"]

    def wait_for(self, state: str, *sources: str, seconds: float = 120) -> None:
        def reached() -> bool:
            now, source = self.told
            return now == state and (not sources or source in sources)

        try:
            wait_until(reached, what=f"{state} from {sources}", timeout=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.status}\n{self.screen}") from None

    @property
    def screen(self) -> str:
        return self.af("capture", self.id, env=self.env).stdout

    def press_until_gone(self, key: str, label: str) -> None:
        """Again until it works: codex drops keys as it opens a dialog, some want Escape twice."""
        pause = 0.4 if self.cli.name == "copilot" else 1.5  # it wants two close together
        for _ in range(20):
            subprocess.run(["tmux", "send-keys", "-t", f"={self.session}:", key], check=True, timeout=120)
            with suppress(AssertionError):
                wait_until(lambda: self.label != label, what="the screen to change", timeout=pause)
                return
        raise AssertionError(f"{key} changes nothing:\n{self.screen}")

    def wait_for_label(self, label: str) -> None:
        wait_until(lambda: self.label == label, what=f"the screen to be {label}")

    @property
    def label(self) -> str:
        capture = ["tmux", "capture-pane", "-e", "-p", "-t", f"={self.session}:"]
        shown = subprocess.run(capture, capture_output=True, text=True, check=True, timeout=120).stdout
        return label_of(shown, self.cli.adapter.cli.screen)

    @cached_property
    def session(self) -> str:
        listed = json.loads(self.af("status", self.id, "--json", env=self.env).stdout)["builders"]
        return str(listed[0]["session"])

    def conversation(self) -> str | None:
        listed = json.loads(self.af("status", self.id, "--json", env=self.env).stdout)["builders"]
        return listed[0]["conversation_id"]  # type: ignore[no-any-return]

    def send(self, text: str) -> None:
        done = self.af("send", self.id, text, env=self.env)
        assert done.returncode == 0, done.stderr


@contextmanager
def spawned(af: Af, cli: Cli, repo: Path, env: Mapping[str, str], prompt: str) -> Iterator[Live]:
    """With permissions that ask."""
    model = f'[runtimes.{cli.name}]\nmodel = "{cli.model}"\n' if cli.model else ""
    (repo / "agent-farm.toml").write_text(f"[env]\npass = {json.dumps(list(cli.keys))}\n{model}")
    done = af("spawn", prompt, "--runtime", cli.name, "--permissions", "ask", "--yes", env=env)
    assert done.returncode == 0, done.stderr
    made = Live(af, cli, done.stdout.split()[0], dict(env))
    try:
        yield made
    finally:
        af("stop", made.id, env=env)

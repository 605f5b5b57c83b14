"""A user's configuration with an agent that writes down how it was started."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.ask import ConfigManager, SourcesManager, SubagentRunner

_RECORDING = """
import json, os, stat, sys
seen = {{
    "argv": sys.argv[1:],
    "cwd": os.getcwd(),
    "mode": stat.S_IMODE(os.lstat(".").st_mode),
    "env": dict(os.environ),
    "stdin": None if os.isatty(0) else sys.stdin.buffer.read().decode("utf-8", "surrogateescape"),
    "links": {{name: os.readlink(name) for name in os.listdir(".") if os.path.islink(name)}},
    "files": {{}},
}}
for root, directories, files in os.walk("."):
    for name in files:
        path = os.path.relpath(os.path.join(root, name), ".")
        if not os.path.islink(path):
            seen["files"][path] = open(path, "rb").read().decode("utf-8", "surrogateescape")
with open({record!r} + ".part", "w") as file:
    json.dump(seen, file)
os.rename({record!r} + ".part", {record!r})
"""


@dataclass
class Stage:
    root: Path
    config: ConfigManager
    sources: SourcesManager
    told: list[str]

    @property
    def runner(self) -> SubagentRunner:
        return SubagentRunner(self.config, self.sources, narrate=self.told.append)

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def record(self) -> Path:
        return self.root / "seen.json"

    def left(self) -> list[Path]:
        """Directories of runs, finished or not."""
        return sorted(self.tmp.glob("*lctx-*"))

    def seen(self) -> dict[str, Any]:
        return dict(json.loads(self.record.read_text()))

    def script(self, body: str = "print('the answer')", *, name: str = "agent") -> Path:
        """A program that records its start and goes on with `body`."""
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        code = _RECORDING.format(record=str(self.record)) + body
        path.write_text(f"#!{sys.executable} -IS\n{code}\n")
        path.chmod(0o755)
        return path

    def use(self, ask: str | None = None, chat: str | None = None, **more: Any) -> None:
        """Make these the commands of the default agent; `{agent}` is the recording program."""
        agent = str(self.root / "bin" / "agent")
        commands = {"ask": ask or "{agent}", "chat": chat or "{agent}"}
        entry = {key: text.replace("{agent}", agent) for key, text in commands.items()}
        self.write({"defaultAgent": "recorder", "agents": {"recorder": {**entry, **more}}})

    def write(self, document: dict[str, Any]) -> None:
        """Keep the sources, replace the rest."""
        self.config.directory.mkdir(parents=True, exist_ok=True)
        sources = self.config.sources
        self.config.path.write_text(json.dumps({**document, "sources": dict(sources)}))

    def directory(self, name: str, files: dict[str, str] | None = None) -> Path:
        path = self.root / "user" / name
        path.mkdir(parents=True)
        for file, text in (files or {"main.py": "print('hello')\n"}).items():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            (path / file).write_text(text)
        return path

    def file(self, name: str, text: str = "read me\n") -> Path:
        path = self.root / "user" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def make_stage(root: Path) -> Stage:
    config = ConfigManager()
    told: list[str] = []
    stage = Stage(root, config, SourcesManager(config, narrate=told.append), told)
    stage.script()
    stage.use()
    return stage

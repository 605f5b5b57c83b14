"""A runtime from any executable that follows the spawn/resume/check_status contract."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.cli import Cli, Hooks, Screen, Start
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.executables.shipped import EXECUTABLES
from agent_farm.runtimes.external_config import ExternalRuntime
from agent_farm.runtimes.lines import Event, LineParser, text_of
from agent_farm.runtimes.mcp_config import claude_form
from agent_farm.runtimes.plain_text import OwnWords, argument_for, fits_argument

DRIVER = Path(__file__).parent / "external_driver" / "__main__.py"


class ExternalEvents(LineParser):
    counts_turns = False  # the contract does not report turns

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "session":
            self.conversation_id = event["id"]
        elif kind == "failed":
            self.fail(event.get("kind", "failed"), event["message"])
        elif kind == "completed":
            self.turns, self.finished = 1, True
        if "state" in event:
            state = event["state"] or {}
            self.output = text_of(state.get("output")) if "output" in state else json.dumps(state)


def _files(runtime: ExternalRuntime, start: Start) -> dict[Path, str]:
    """The driver's arguments, and the files that the executable reads."""
    session = {
        "command": runtime.command,
        "name": runtime.name,
        "brief": str(start.place / "brief.md"),
        "state": str(start.place / "state.json"),
        "prompt": _argument(start),
        "cwd": str(start.cwd),
        "timeout_seconds": runtime.timeout_minutes * 60,
        "hook": start.report,
        "id": start.conversation_id if start.resume else None,
    }
    title = start.builder or runtime.name
    parts = [f"# {title}", start.role.strip(), *(("## Task", start.prompt) if start.prompt else ())]
    return {
        start.place / "external.json": json.dumps(session),
        start.place / "external-mcp.json": json.dumps(claude_form(start.servers)),
        start.place / "brief.md": "\n\n".join(part for part in parts if part) + "\n",
    }


def _argument(start: Start) -> str:
    if start.prompt is None:
        return ""
    if start.in_pane:
        return argument_for(start.prompt, start.prompt_file, OwnWords())
    return start.prompt if fits_argument(start.prompt) else "Do what the brief says."


EXTERNAL = Cli(
    name="external",
    title="External executable",
    install="agent_runtime.json declares it",
    pane="interactive {flags}",
    headless="headless {flags}",
    flags=lambda start: (str(start.place / "external.json"),),
    environment=lambda start: {"AF_MCP_CONFIG": str(start.place / "external-mcp.json")},
    events=ExternalEvents,
    hooks=Hooks(
        states={
            "pending": "working",
            "active": "working",
            "completed": "idle",
            "failed": "failed",
            "message": "working",
        },
        submitted="message",
    ),
    screen=Screen(ready=r"^> *$", draft=r"^> \S", working=r"^● active"),
    own_words=OwnWords(whole="/exit"),
    interrupt="",
    notices_dead_mcp=False,
    tells_version=False,
    calls_tools=False,
)


class ExternalAdapter(CliAdapter):
    """A pane or a headless run starts our driver, which calls the executable and reports its status."""

    def __init__(self, runtime: ExternalRuntime) -> None:
        self.runtime = runtime
        self.cli = replace(
            EXTERNAL, name=runtime.name, binary=str(runtime.adapter), files=partial(_files, runtime)
        )
        if runtime.shipped:  # the variables of the CLI that it runs
            shipped = get_adapter(EXECUTABLES[runtime.name]).cli
            self.cli = replace(self.cli, keys=shipped.keys, variables=shipped.variables)

    def create_worker(self) -> ExternalAdapter:
        return type(self)(self.runtime)

    def program_problem(self, env: Mapping[str, str], command: Sequence[str] | None = None) -> str | None:
        if self.runtime.shipped:
            return get_adapter(EXECUTABLES[self.name]).problem(env)
        path = self.runtime.adapter
        if not path.is_file():
            return f"{path} does not exist; agent_runtime.json declares it as the adapter of {self.name}"
        if not os.access(path, os.X_OK):
            return f"{path} cannot be executed; chmod +x {path}"
        return None

    def find_command(
        self, env: Mapping[str, str], command: Sequence[str] | None = None
    ) -> tuple[str, ...] | None:
        usable = self.problem(env) is None
        return (sys.executable, "-I", "-S", str(DRIVER)) if usable else None

    def own_environment(self, env: Mapping[str, str], model: str | None) -> dict[str, str]:
        """Everything declared, because nobody else knows whose keys an executable needs."""
        return dict(env)

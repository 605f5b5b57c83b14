"""Any executable that follows the spawn/resume/check_status contract, as a runtime."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent_farm.disk import replace_file
from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Cli, Hooks, Screen, Start
from agent_farm.runtimes.executables.paths import EXECUTABLES
from agent_farm.runtimes.external_config import ExternalRuntime, load_external_runtime
from agent_farm.runtimes.lines import Event, LineParser, run_lines, text_of
from agent_farm.runtimes.mcp_config import claude_form
from agent_farm.runtimes.plain_text import OwnWords, argument_for, fits_argument
from agent_farm.runtimes.process import Command
from agent_farm.runtimes.result import RuntimeResult

DRIVER = Path(__file__).parent / "external_driver" / "__main__.py"

EXTERNAL = Cli(
    name="external",
    title="External executable",
    install="agent_runtime.json declares it",
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
    notices_dead_mcp=False,
    tells_version=False,
    calls_tools=False,
)


class ExternalAdapter(RuntimeAdapter):
    """A pane or a headless run holds our driver; the driver calls the executable and reports its status."""

    def __init__(self, runtime: ExternalRuntime) -> None:
        self.runtime = runtime
        self.cli = replace(EXTERNAL, name=runtime.name, binary=str(runtime.adapter))
        if runtime.shipped:  # the variables of the CLI that it runs
            shipped = get_adapter(EXECUTABLES[runtime.name]).cli
            self.cli = replace(self.cli, keys=shipped.keys, variables=shipped.variables)

    @classmethod
    def declared(cls, root: Path, name: str) -> ExternalAdapter:
        return cls(load_external_runtime(root, name))

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
        """All that was declared: nobody else knows whose keys an executable needs."""
        return dict(env)

    def interactive(self, start: Start) -> Launch:
        directory = start.place
        prompt = argument_for(start.prompt, start.prompt_file, OwnWords()) if start.prompt is not None else ""
        document = self._order_document(directory, start.cwd, prompt)
        document["hook"] = list(start.report)
        document["id"] = start.conversation_id if start.resume else None
        servers = (start.server,) if start.server else ()
        files = (
            LaunchFile(directory / "external.json", json.dumps(document)),
            LaunchFile(directory / "brief.md", brief(start.builder, start.role, start.prompt)),
            LaunchFile(directory / "external-mcp.json", json.dumps(claude_form(servers))),
        )
        env = {**start.env, "AF_MCP_CONFIG": str(directory / "external-mcp.json")}
        if start.server:
            env |= start.server.environment()
        argv = (sys.executable, "-I", "-S", str(DRIVER), "interactive", str(directory / "external.json"))
        return Launch(argv, start.cwd, env, files)

    async def run_headless(self, start: Start) -> RuntimeResult:
        given = start.prompt or ""
        prompt = given if fits_argument(given) else "Do what the brief says."
        document = self._order_document(start.place, start.cwd, prompt)
        document["id"] = start.conversation_id if start.resume else None
        replace_file(start.place / "brief.md", brief(self.name, start.role, start.prompt))
        replace_file(start.place / "external.json", json.dumps(document))
        servers = {start.server.name: start.server} if start.server else {}
        env = {**start.env, "AF_MCP_CONFIG": str(self.build_config_file(servers, start.place))}
        command = Command(
            argv=(*(start.command or ()), "headless", str(start.place / "external.json")),
            cwd=start.cwd,
            env=env,
            scratch=start.place,
            timeout=start.timeout,
        )
        return await run_lines(command, ExternalLines(start))

    def _order_document(self, directory: Path, cwd: Path, prompt: str) -> dict[str, object]:
        return {
            "command": list(self.runtime.command),
            "name": self.name,
            "brief": str(directory / "brief.md"),
            "state": str(directory / "state.json"),
            "prompt": prompt,
            "cwd": str(cwd),
            "timeout_seconds": self.runtime.timeout_minutes * 60,
        }


class ExternalLines(LineParser):
    counts_turns = False  # the contract does not tell turns

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


def brief(title: str, role: str | None, task: str | None) -> str:
    parts = [f"# {title}", *([role.strip()] if role else []), *(["## Task", task] if task else [])]
    return "\n\n".join(parts) + "\n"

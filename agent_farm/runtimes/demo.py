"""`demo`: a small scripted agent in a process of its own, to try and test everything without an account."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes.base import HeadlessOrder, InteractiveOrder, RuntimeAdapter
from agent_farm.runtimes.cli import Cli, Hooks, Screen, Words
from agent_farm.runtimes.engine import headless_start
from agent_farm.runtimes.lines import Event, LineParser, last_line, run_lines
from agent_farm.runtimes.mcp_config import claude_form
from agent_farm.runtimes.plain_text import OwnWords
from agent_farm.runtimes.process import Command
from agent_farm.runtimes.result import Failure, RuntimeResult, Usage

AGENT = Path(__file__).parent / "demo_agent" / "__main__.py"


DEMO = Cli(
    name="demo",
    title="Demo agent",
    binary="python",
    install="it is part of agent-farm",
    words=Words(begin=("--conversation", "{}")),
    transports=("http",),
    hooks=Hooks(
        states={
            "UserPromptSubmit": "working",
            "PermissionRequest": "waiting",
            "PostToolUse": "working",
            "Stop": "idle",
            "StopFailure": "waiting",
        },
        ready_states={
            "SessionStart:startup": "idle",
            "SessionStart:resume": "idle",
        },
        submitted="UserPromptSubmit",
        unsure=("PermissionRequest",),
        writers={"edit": "path", "write": "path"},
    ),
    own_words=OwnWords(whole="/exit"),
    screen=Screen(
        ready=r"^demo>\s*$",
        draft=r"^demo> \S",
        dialog=r"^demo\? 1 yes",
        working=r"^● [^\n]*\n+demo>[^\n]*\s*\Z",
    ),
    tells_version=False,
    check_prompt='[[mcp:farm_check {"word": "demo"}]]',
)


class DemoAdapter(RuntimeAdapter):
    cli = DEMO

    def find_command(
        self, env: Mapping[str, str], command: Sequence[str] | None = None
    ) -> tuple[str, ...] | None:
        return super().find_command(env, command) if command else (sys.executable, "-I", "-S", str(AGENT))

    def interactive(self, order: InteractiveOrder) -> Launch:
        files = [self._mcp_file(order)]
        prompt_file = order.prompt_file
        if order.prompt is not None and prompt_file is None:
            prompt_file = order.run_directory / "demo-prompt.txt"
            files.append(LaunchFile(prompt_file, order.prompt))
        argv = [*(self.find_command(order.env, order.command) or ()), "interactive"]
        argv += ["--home", str(order.run_directory / "demo"), "--hook", json.dumps(order.report)]
        argv += ["--mcp-config", str(order.run_directory / "demo-mcp.json")]
        argv += ["--permissions", order.permissions]
        if order.prompt is not None:
            argv += ["--prompt-file", str(prompt_file)]
        if order.role_text:
            role = order.run_directory / "demo-role.md"
            files.append(LaunchFile(role, order.role_text))
            argv += ["--role-file", str(role)]
        if order.conversation_id:
            argv += ["--resume" if order.resume else "--conversation", order.conversation_id]
        if order.model:
            argv += ["--model", order.model]
        env = {**order.env, **(order.mcp_server.environment() if order.mcp_server else {})}
        return Launch((*argv, *order.extra_args), order.cwd, env, tuple(files))

    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        argv = [*order.command, "headless", "--home", str(order.home), "--permissions", order.permissions]
        if order.mcp_server:
            argv += [
                "--mcp-config",
                str(self.build_config_file({order.mcp_server.name: order.mcp_server}, order.scratch)),
            ]
        if order.system_prompt:
            role = order.scratch / "role.md"
            role.write_text(order.system_prompt, encoding="utf-8")
            argv += ["--role-file", str(role)]
        if order.conversation_id:
            argv += ["--resume" if order.resume else "--conversation", order.conversation_id]
        if order.model:
            argv += ["--model", order.model]
        for word, places in (("--read", order.bounds.reads), ("--keep", order.bounds.keeps)):
            argv += [part for place in places for part in (word, str(place))]
        command = Command(
            argv=(*argv, *order.extra_args),
            cwd=order.cwd,
            env=order.env,
            given=order.prompt.encode("utf-8", "surrogateescape"),
            scratch=order.scratch,
            timeout=order.timeout,
        )
        return await run_lines(command, DemoLines(headless_start(self.cli, order)))

    def _mcp_file(self, order: InteractiveOrder) -> LaunchFile:
        servers = (order.mcp_server,) if order.mcp_server else ()
        return LaunchFile(order.run_directory / "demo-mcp.json", json.dumps(claude_form(servers)))


class DemoLines(LineParser):
    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "start":
            self.conversation_id = event["conversation_id"]
        elif kind == "turn":
            self.turns += 1
        elif kind == "tool":
            key = str(len(self.calls))
            self.call(key, event["name"], event["input"])
            self.answer(key, event["result"], is_error=event["is_error"])
        elif kind == "result" and "error" in event:
            self.fail(event["error"]["kind"], event["error"]["message"])
        elif kind == "result":
            self.output, self.cost, self.finished = event["output"], event["cost"], True
            self.usage = Usage(**event["usage"])

    def explain(self, stderr: str, exit_code: int) -> Failure:
        said = last_line(stderr) or f"ended with exit code {exit_code}"
        return Failure("refused-argument" if said.startswith("demo: ") else "failed", said)

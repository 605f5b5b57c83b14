"""Copilot headless: the command line, and what is made of its events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_farm.runtimes.base import HeadlessOrder, Permissions
from agent_farm.runtimes.ledger import spent_since
from agent_farm.runtimes.lines import Event, LineParser, api_failure, last_line, number, run_lines, text_of
from agent_farm.runtimes.process import Command
from agent_farm.runtimes.result import Failure, RuntimeResult, Usage
from agent_farm.runtimes.skills import skill_paths

PERMISSIONS: Mapping[Permissions, tuple[str, ...]] = {
    "ask": (),
    "edit": ("--allow-tool=write",),
    "all": ("--allow-all-tools", "--allow-all-paths", "--allow-all-urls"),
}
_REFUSALS = ("unknown option", "No session", "not found", "Invalid", "argument")


async def run_copilot(order: HeadlessOrder, env: Mapping[str, str]) -> RuntimeResult:
    usage_file = order.scratch / "usage.json"
    argv = [*order.command, "--no-auto-update", "--no-color", "--output-format", "json"]
    argv += ["--disable-builtin-mcps", "--no-ask-user", *PERMISSIONS[order.permissions]]
    argv += ["--usage-output-file", str(usage_file)]
    if order.permissions == "edit":
        argv += [f"--allow-tool=shell({script}:*)" for script in _skill_scripts(order)]
    if order.mcp_server:
        argv.append(f"--allow-tool={order.mcp_server.name}")
    if order.model:
        argv += ["--model", order.model]
    if order.conversation_id:
        argv.append(f"--{'resume' if order.resume else 'session-id'}={order.conversation_id}")
    command = Command(
        argv=(*argv, *order.extra_args),
        cwd=order.cwd,
        env=env,
        given=order.prompt.encode("utf-8", "surrogateescape"),
        scratch=order.scratch,
        timeout=order.timeout,
    )
    return await run_lines(command, CopilotLines(order, usage_file))


class CopilotLines(LineParser):
    def __init__(self, order: HeadlessOrder, usage_file: Path) -> None:
        super().__init__(order.max_turns)
        self._order = order
        self.conversation_id = order.conversation_id
        self._usage_file = usage_file

    def event(self, event: Event) -> None:
        kind, data = event.get("type"), event.get("data") or {}
        if kind == "session.start":
            self.conversation_id = data.get("sessionId")
        elif kind == "session.mcp_servers_loaded":
            self._servers(data)
        elif kind == "assistant.turn_start":
            self.turns += 1
        elif kind == "tool.execution_start":
            name = data.get("toolName")
            self.call(data["toolCallId"], str(name), data.get("arguments"))
        elif kind == "tool.execution_complete":
            result = data.get("result") or data.get("error")
            self.answer(data["toolCallId"], _text(result), is_error=not data.get("success"))
        elif kind == "assistant.message":
            self.output = data.get("content") or self.output
        elif kind == "session.error":
            failure = api_failure(data.get("statusCode"), str(data.get("message")))
            self.fail(failure.kind, failure.message)
        elif kind == "result":
            self._result(event)

    def explain(self, stderr: str, exit_code: int) -> Failure:
        lines = [line.strip() for line in stderr.splitlines() if line.strip().lower().startswith("error")]
        said = lines[0] if lines else last_line(stderr) or f"ended with exit code {exit_code}"
        if "authenticat" in stderr:
            return Failure("not-logged-in", said)
        return Failure("refused-argument" if any(w in stderr for w in _REFUSALS) else "failed", said)

    def _servers(self, data: Event) -> None:
        for server in data.get("servers") or ():
            if server.get("status") in ("failed", "needs-auth"):
                self.fail("mcp-unreachable", f"MCP server {server.get('name')}: {server.get('error')}")

    def _result(self, event: Event) -> None:
        self.finished = not event.get("exitCode")
        self.conversation_id = event.get("sessionId") or self.conversation_id
        with suppress(OSError, ValueError):
            self.usage = self._usage(json.loads(self._usage_file.read_text()))

    def _usage(self, document: Mapping[str, Any]) -> Usage:
        """The sum over all models, and of that this run's part: the file counts the whole conversation."""
        models = [metrics.get("usage") or {} for metrics in (document.get("modelMetrics") or {}).values()]
        names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        totals = {name: float(sum(number(usage.get(name)) for usage in models)) for name in names}
        spent = spent_since(self._order, self.conversation_id, totals) or {}
        cached = number(spent.get("cacheReadTokens"))
        return Usage(
            input_tokens=max(0, number(spent.get("inputTokens")) - cached),
            output_tokens=number(spent.get("outputTokens")),
            cache_read_tokens=cached,
            cache_write_tokens=number(spent.get("cacheWriteTokens")),
        )


def _skill_scripts(order: HeadlessOrder) -> list[str]:
    """Its rules match a command's first word, so each script that may run is named; `sh FILE` is not."""
    paths = skill_paths(order.skills_home, order.cwd, executable=True)
    return [*paths, *(f"./{path}" for path in paths if not path.startswith("/"))]


def _text(result: object) -> str:
    if isinstance(result, Mapping) and "message" in result:
        return str(result["message"])
    return text_of(result)

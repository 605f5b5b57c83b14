"""Drives any agent that speaks the Agent Client Protocol, headless; agent_runtime.json declares it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_farm.runtimes.acp_config import AcpRuntime
from agent_farm.runtimes.cli import Cli, Start
from agent_farm.runtimes.conversations import spent_since
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.lines import Event, LineParser, number, status_in, text_of
from agent_farm.runtimes.mcp_config import locked_name
from agent_farm.runtimes.result import Usage
from agent_farm.runtimes.skills import skill_commands

# -E -P instead of -I, because the package may be installed for this user only
WORKER = (sys.executable, "-E", "-P", "-m", "agent_farm.runtimes.acp_worker")
_NOT_LOGGED_IN = -32000


class AcpEvents(LineParser):
    """Parses what the worker prints: the agent's session updates, and how the turn ended."""

    _begins_anew = False  # the answer is the text after the last tool call
    _spent: float | None = None

    def event(self, event: Event) -> None:
        kind = event["type"]
        if kind == "session":
            self.conversation_id = event["id"]
        elif kind == "update":
            self._update(event["update"])
        elif kind == "failed":
            self.fail(event["kind"], event["message"])
        elif kind == "error":
            self._error(event["code"], event["message"])
        elif kind == "done":
            self._done(event["response"])

    def _update(self, update: Mapping[str, Any]) -> None:
        kind = update["sessionUpdate"]
        if kind == "agent_message_chunk":
            self.speaks()
            self.output = ("" if self._begins_anew else self.output) + text_of(update["content"])
            self._begins_anew = False
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(update["toolCallId"], update)
        elif kind == "usage_update" and (update.get("cost") or {}).get("currency") == "USD":
            self._spent = float(update["cost"]["amount"])

    def _tool(self, key: str, update: Mapping[str, Any]) -> None:
        """A call is reported in pieces, and by some agents only when it is done."""
        if key not in self.calls:
            self.speaks()
            self._begins_anew = True
        known = self.calls.get(key)
        title, given = update.get("title"), update.get("rawInput")
        self.call(key, known.name if known else str(title), given or (known.input if known else {}))
        if update.get("status") in ("completed", "failed"):
            told = update.get("content") or update.get("rawOutput")
            self.answer(key, text_of(told), is_error=update["status"] == "failed")

    def _error(self, code: int, message: str) -> None:
        if code == _NOT_LOGGED_IN:
            self.fail("not-logged-in", message)
        else:
            self.fail_api(code if 400 <= code < 600 else status_in(message), message)

    def _done(self, response: Mapping[str, Any]) -> None:
        reason = response["stopReason"]
        if reason == "max_turn_requests":
            self.fail("turn-limit", "it ended at its own limit of requests")
        elif reason != "end_turn":
            self.fail("failed", f"it ended its turn early: {reason.replace('_', ' ')}")
        self.usage = _usage(response)
        if self._spent is not None:
            told = spent_since(self.start, self.conversation_id, {"cost": self._spent})
            self.cost = told["cost"] if told else None
        self.finished = True


def _usage(response: Mapping[str, Any]) -> Usage:
    """Read from the protocol's fields, or from older ones."""
    told = response.get("usage")
    if told is None:
        counts = ((response.get("_meta") or {}).get("quota") or {}).get("token_count") or {}
        return Usage(number(counts.get("input_tokens")), number(counts.get("output_tokens")))
    read, written = number(told.get("cachedReadTokens")), number(told.get("cachedWriteTokens"))
    given, made = number(told["inputTokens"]), number(told["outputTokens"])
    if given + made == number(told["totalTokens"]):  # the input includes what came from a cache
        given -= read + written
    return Usage(max(0, given), made, read, written)


def _order(runtime: AcpRuntime, start: Start) -> tuple[tuple[str, ...], str]:
    server = start.server
    name = server.name if server else start.run
    words = (*(start.command or ()), *start.extra_args)
    order = {
        "command": [word.replace("{server}", name) for word in words],
        "name": runtime.name,
        "cwd": str(start.cwd),
        "role": "" if start.resume else start.role,
        "prompt": start.prompt,
        "server": server and {"name": server.name, "url": server.url, "transport": server.transport},
        "resume": start.conversation_id if start.resume else None,
        "model": start.model,
        "auth": runtime.auth,
        "mode": runtime.modes.get(start.permissions),
        "seconds": runtime.timeout_minutes * 60,
        "rules": {
            "permissions": start.permissions,
            "server": name,
            "cwd": str(start.cwd),
            "reads": [str(place) for place in start.bounds.reads],
            "hides": [str(place) for place in start.bounds.hides],
            "keeps": [str(place) for place in start.bounds.keeps],
            "commands": skill_commands(start.skills, start.cwd),
        },
    }
    return WORKER, json.dumps(order)


ACP = Cli(
    name="acp",
    title="ACP agent",
    events=AcpEvents,
    files=lambda start: {start.home / ".keep": ""},
    server_name=lambda server, start: locked_name(server, start.run),
    notices_dead_mcp=False,
    tells_version=False,
)


class AcpAdapter(CliAdapter):
    """A headless run starts our worker, which is the agent's client (`acp_worker.py`)."""

    def __init__(self, runtime: AcpRuntime) -> None:
        self.runtime = runtime
        install = runtime.install or f"agent_runtime.json names it as the command of {runtime.name}"
        self.cli = replace(
            ACP,
            name=runtime.name,
            binary=Path(runtime.acp[0]).name,
            install=install,
            variables=runtime.env,
            worker=partial(_order, runtime),
            environment=self._environment,
        )

    def _environment(self, start: Start) -> dict[str, str]:
        variables = self.runtime.set.items()
        return {name: text.replace("{home}", str(start.home)) for name, text in variables}

    def create_worker(self) -> AcpAdapter:
        return type(self)(self.runtime)

    def find_command(
        self, env: Mapping[str, str], command: Sequence[str] | None = None
    ) -> tuple[str, ...] | None:
        return super().find_command(env, command or self.runtime.acp)

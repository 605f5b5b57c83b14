"""Parses the headless output of Copilot CLI, and the file in which it sums up tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.conversations import spent_since
from agent_farm.runtimes.copilot import usage_file
from agent_farm.runtimes.lines import Event, LineParser, number, text_of, usage_of
from agent_farm.runtimes.result import Failure, Usage


class CopilotEvents(LineParser):
    refusals = ("unknown option", "No session", "not found", "Invalid", "argument")

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.conversation_id = start.conversation_id

    def event(self, event: Event) -> None:
        kind, data = event.get("type"), event.get("data") or {}
        if kind == "session.start":
            self.conversation_id = data.get("sessionId")
        elif kind == "session.mcp_servers_loaded":
            for server in data.get("servers") or ():
                if server.get("status") in ("failed", "needs-auth"):
                    self.fail("mcp-unreachable", f"MCP server {server.get('name')}: {server.get('error')}")
        elif kind == "assistant.turn_start":
            self.turns += 1
        elif kind == "tool.execution_start":
            self.call(data["toolCallId"], str(data.get("toolName")), data.get("arguments"))
        elif kind == "tool.execution_complete":
            result = data.get("result") or data.get("error")
            self.answer(data["toolCallId"], _text(result), is_error=not data.get("success"))
        elif kind == "assistant.message":
            self.output = data.get("content") or self.output
        elif kind == "session.error":
            self.fail_api(data.get("statusCode"), str(data.get("message")))
        elif kind == "result":
            self.finished = not event.get("exitCode")
            self.conversation_id = event.get("sessionId") or self.conversation_id
            with suppress(OSError, ValueError):
                self.usage = self._usage(json.loads(usage_file(self.start).read_text()))

    def explain(self, stderr: str, exit_code: int) -> Failure:
        found = super().explain(stderr, exit_code)
        return Failure("not-logged-in", found.message) if "authenticat" in stderr else found

    def _usage(self, document: Mapping[str, Any]) -> Usage:
        """This run's share of the sum over all models: the file counts the whole conversation."""
        models = [metrics.get("usage") or {} for metrics in (document.get("modelMetrics") or {}).values()]
        names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        totals = {name: float(sum(number(usage.get(name)) for usage in models)) for name in names}
        spent = spent_since(self.start, self.conversation_id, totals) or {}
        return usage_of(*(spent.get(name) for name in names))


def _text(result: object) -> str:
    return str(result["message"]) if isinstance(result, Mapping) and "message" in result else text_of(result)

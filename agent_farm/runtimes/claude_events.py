"""Parses the output of `claude -p --output-format stream-json`, and of the SDK's worker."""

from __future__ import annotations

from agent_farm.runtimes.conversations import spent_since
from agent_farm.runtimes.lines import Event, LineParser, last_line, number, text_of, turn_limit
from agent_farm.runtimes.result import Usage


class ClaudeEvents(LineParser):
    counts_turns = False  # --max-turns limits them
    refusals = (
        "No conversation found",
        "already in use",
        "unknown option",
        "Invalid",
        "must be",
        "cannot be used",
    )

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "system" and event.get("subtype") == "init":
            self._begin(event)
        elif kind == "system" and event.get("subtype") == "api_retry":
            self._retry(event)
        elif kind == "assistant":
            self.turns += not event.get("parent_tool_use_id")
            for block in _blocks(event):
                if block["type"] == "text":
                    self.output = block["text"]
                elif block["type"] == "tool_use":
                    self.call(block["id"], block["name"], block["input"])
        elif kind == "user":
            for block in _blocks(event):
                if block["type"] == "tool_result":
                    failed = bool(block.get("is_error"))
                    self.answer(block["tool_use_id"], text_of(block.get("content")), is_error=failed)
        elif kind == "failed":
            self._failed(event["stderr"], event["message"])
        elif kind == "result":
            self._result(event)

    def _begin(self, data: Event) -> None:
        self.conversation_id = data.get("session_id")
        for server in data.get("mcp_servers") or ():
            if server.get("status") in ("failed", "needs-auth"):
                reason = "refused the token" if server["status"] == "needs-auth" else "does not answer"
                self.fail("mcp-unreachable", f"MCP server {server.get('name')} {reason}")

    def _retry(self, data: Event) -> None:
        """It retries a refused key for minutes; after the first attempt, a login may have been renewed."""
        status = data.get("error_status")
        if status in (401, 403) and number(data.get("attempt")) > 1:
            self.is_hopeless = True
            self.fail("not-logged-in", f"the API refuses the key or login: {status} {data.get('error')}")

    def _failed(self, stderr: str, message: str) -> None:
        refused = any(word in stderr + message for word in self.refusals)
        self.fail("refused-argument" if refused else "failed", last_line(stderr) or last_line(message))

    def _cost(self, total: object) -> float | None:
        """This run's share of the total, which the CLI counts for the whole conversation."""
        if not isinstance(total, int | float):
            return None
        spent = spent_since(self.start, self.conversation_id, {"cost": float(total)})
        return None if spent is None else round(spent["cost"], 6)

    def _result(self, event: Event) -> None:
        usage = event.get("usage") or {}
        self.finished = True
        self.output = event.get("result") or self.output
        self.conversation_id = event.get("session_id") or self.conversation_id
        self.turns = number(event.get("num_turns")) or self.turns
        self.cost = self._cost(event.get("total_cost_usd"))
        self.usage = Usage(
            input_tokens=number(usage.get("input_tokens")),
            output_tokens=number(usage.get("output_tokens")),
            cache_read_tokens=number(usage.get("cache_read_input_tokens")),
            cache_write_tokens=number(usage.get("cache_creation_input_tokens")),
        )
        if event.get("subtype") == "error_max_turns":
            self.fail("turn-limit", turn_limit(self.max_turns))
        elif event.get("is_error"):
            message = event.get("result") or "; ".join(event.get("errors") or ()) or str(event.get("subtype"))
            if any(word in message for word in self.refusals):
                self.fail("refused-argument", message)
            self.fail_api(event.get("api_error_status"), message)


def _blocks(event: Event) -> list[Event]:
    content = event["message"].get("content")
    return content if isinstance(content, list) else []

"""Parses `codex exec --json`, and finds what that leaves out: how often the model answered."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.codex_lock import config_home, key_of
from agent_farm.runtimes.conversations import spent_since
from agent_farm.runtimes.lines import (
    Event,
    LineParser,
    last_line,
    number,
    status_in,
    text_of,
    usage_of,
)
from agent_farm.runtimes.result import Failure, Usage

# items that are tool calls, and the field with their arguments
_CALLS = {
    "mcp_tool_call": "arguments",
    "command_execution": "command",
    "file_change": "changes",
    "web_search": "query",
}
_TRIES = 20  # the file appears soon after the start, or never
_COUNTED = (b'"token_count"', b'"total_token_usage"')


class CodexEvents(LineParser):
    answered_is_done = True
    refusals = (
        "unexpected argument",
        "error parsing",
        "unknown configuration",
        "no rollout found",
        "invalid value",
    )

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self._rollout: Rollout | None = None

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if self._rollout:
            self.turns = max(self.turns, self._rollout.answers())
        if kind == "thread.started":
            self._begin_thread(str(event["thread_id"]))
        elif kind == "item.started" and event["item"]["type"] in _CALLS:
            self._begin_call(event["item"])
        elif kind == "item.completed":
            self._end_item(event["item"])
        elif kind == "turn.completed":
            self.finished = True
            self.turns = max(1, self.turns)
            self.usage = self._usage(event.get("usage") or {})
        elif kind == "turn.failed":
            message = str(event["error"].get("message") or json.dumps(event["error"]))
            self.fail_api(status_in(message), message)

    def explain(self, stderr: str, exit_code: int) -> Failure:
        if "required MCP" in stderr or "MCP server" in stderr:
            return Failure("mcp-unreachable", last_line(stderr))
        return super().explain(stderr, exit_code)

    def _begin_thread(self, identity: str) -> None:
        self.conversation_id = identity
        wanted = self.start.conversation_id
        home = self.start.home if key_of(self.start.env) else config_home(self.start.env)
        self._rollout = Rollout(home, identity, resumed=self.start.resume)
        if self.start.resume and wanted != identity:  # codex silently begins a new thread for an unknown name
            self.fail("refused-argument", f"no conversation {wanted}")

    def _begin_call(self, item: Event) -> None:
        if item["type"] == "mcp_tool_call":
            self.call(item["id"], f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments"))
        else:
            given = _CALLS[item["type"]]
            self.call(item["id"], str(item["type"]), {given: item.get(given)})

    def _end_item(self, item: Event) -> None:
        if item["type"] == "agent_message":
            self.output = item["text"]
        elif item["type"] in _CALLS:
            if item["id"] not in self.calls:
                self._begin_call(item)
            told = (item.get(name) for name in ("aggregated_output", "result", "error", "status"))
            failed = item.get("status") == "failed" or bool(item.get("error") or item.get("exit_code"))
            self.answer(item["id"], text_of(next(filter(None, told), None)), is_error=failed)

    def _usage(self, total: Event) -> Usage:
        """This run's share of the total, which counts the whole conversation."""
        totals = {name: float(number(value)) for name, value in total.items()}
        spent = spent_since(self.start, self.conversation_id, totals) or {}
        names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
        return usage_of(*(spent.get(name) for name in names))


class Rollout:
    """Codex's own record of the thread, read from where this run began; one answer may call many tools."""

    def __init__(self, home: Path, thread: str, *, resumed: bool) -> None:
        self._pattern = (home / "sessions", f"*/*/*/rollout-*{thread}.jsonl")
        self._tries = 0
        self._file = self._found()
        self._offset = self._size() if resumed else 0
        self._answers = 0

    def answers(self) -> int:
        if self._file is None and self._tries < _TRIES:
            self._file = self._found()
        if self._file is None:
            return 0
        with suppress(OSError), open(self._file, "rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):  # still being written
                    break
                self._offset += len(line)
                self._answers += all(word in line for word in _COUNTED)
        return self._answers

    def _found(self) -> Path | None:
        self._tries += 1
        directory, pattern = self._pattern
        return next(directory.glob(pattern), None)

    def _size(self) -> int:
        with suppress(OSError):
            return self._file.stat().st_size if self._file else 0
        return 0

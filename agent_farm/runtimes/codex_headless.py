"""Codex headless: the command line of `codex exec`, and what is made of its events."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from agent_farm.runtimes.base import HeadlessOrder
from agent_farm.runtimes.codex_rollout import Rollout
from agent_farm.runtimes.ledger import spent_since
from agent_farm.runtimes.lines import Event, LineParser, api_failure, last_line, number, run_lines, text_of
from agent_farm.runtimes.process import Command
from agent_farm.runtimes.result import Failure, RuntimeResult, Usage

_REFUSALS = (
    "unexpected argument",
    "error parsing",
    "unknown configuration",
    "no rollout found",
    "invalid value",
)
# items that are calls of tools, and what they are called with
_CALLS = {
    "mcp_tool_call": "arguments",
    "command_execution": "command",
    "file_change": "changes",
    "web_search": "query",
}


async def run_codex(
    order: HeadlessOrder, env: Mapping[str, str], lock: list[str], settings: list[str]
) -> RuntimeResult:
    argv = [*order.command, "exec", "--json", "--skip-git-repo-check", *lock]
    for setting in settings:
        argv += ["-c", setting]
    if order.model:
        argv += ["-m", order.model]
    argv += order.extra_args
    if order.resume and order.conversation_id:
        argv += ["resume", order.conversation_id]
    command = Command(
        argv=(*argv, "-"),
        cwd=order.cwd,
        env={**order.env, **env},
        given=order.prompt.encode("utf-8", "surrogateescape"),
        scratch=order.scratch,
        timeout=order.timeout,
    )
    return await run_lines(command, CodexLines(order, _home(command.env)))


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME", os.sep)) / ".codex")


class CodexLines(LineParser):
    answered_is_done = True

    def __init__(self, order: HeadlessOrder, home: Path) -> None:
        super().__init__(order.max_turns)
        self._order, self._home = order, home
        self._rollout: Rollout | None = None

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if self._rollout:
            self.turns = max(self.turns, self._rollout.answers())
        if kind == "thread.started":
            self._thread(str(event["thread_id"]))
        elif kind == "item.started" and event["item"]["type"] in _CALLS:
            self._begin(event["item"])
        elif kind == "item.completed":
            self._item(event["item"])
        elif kind == "turn.completed":
            self.finished = True
            self.turns = max(1, self.turns)
            self.usage = self._usage(event.get("usage") or {})
        elif kind == "turn.failed":
            message = str(event["error"].get("message") or json.dumps(event["error"]))
            found = re.search(r"\b([45]\d\d)\b", message)
            failure = api_failure(int(found[1]) if found else None, message)
            self.fail(failure.kind, failure.message)

    def explain(self, stderr: str, exit_code: int) -> Failure:
        if "required MCP" in stderr or "MCP server" in stderr:
            return Failure("mcp-unreachable", last_line(stderr))
        errors = [line for line in stderr.splitlines() if re.match(r"(?i)error", line.strip())]
        said = errors[0].strip() if errors else last_line(stderr)
        refused = any(word in stderr for word in _REFUSALS)
        return Failure(
            "refused-argument" if refused else "failed", said or f"ended with exit code {exit_code}"
        )

    def _thread(self, identity: str) -> None:
        self.conversation_id = identity
        wanted = self._order.conversation_id
        self._rollout = Rollout(self._home, identity, resumed=self._order.resume)
        if self._order.resume and wanted != identity:  # an unknown name silently begins a new thread
            self.fail("refused-argument", f"no conversation {wanted}")

    def _begin(self, item: Event) -> None:
        self.call(item["id"], *_call(item))

    def _item(self, item: Event) -> None:
        if item["type"] == "agent_message":
            self.output = item["text"]
        elif item["type"] in _CALLS:
            if item["id"] not in self.calls:
                self._begin(item)
            result = (
                item.get("aggregated_output") or item.get("result") or item.get("error") or item.get("status")
            )
            failed = item.get("status") == "failed" or bool(item.get("error") or item.get("exit_code"))
            self.answer(item["id"], text_of(result), is_error=failed)

    def _usage(self, total: Event) -> Usage:
        """This run's part of a total that counts the whole conversation."""
        totals = {name: float(number(value)) for name, value in total.items()}
        spent = spent_since(self._order, self.conversation_id, totals) or {}
        cached = number(spent.get("cached_input_tokens"))
        return Usage(
            input_tokens=max(0, number(spent.get("input_tokens")) - cached),
            output_tokens=number(spent.get("output_tokens")),
            cache_read_tokens=cached,
            cache_write_tokens=number(spent.get("cache_write_input_tokens")),
        )


def _call(item: Event) -> tuple[str, object]:
    if item["type"] == "mcp_tool_call":
        return f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments")
    field = _CALLS[item["type"]]
    return str(item["type"]), {field: item.get(field)}

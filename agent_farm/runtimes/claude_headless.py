"""Claude Code headless: what the worker is told, and what is made of what it says."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from agent_farm.disk import replace_file
from agent_farm.runtimes.base import HeadlessOrder, Permissions
from agent_farm.runtimes.ledger import spent_since
from agent_farm.runtimes.lines import (
    Event,
    LineParser,
    api_failure,
    last_line,
    number,
    run_lines,
    text_of,
    turn_limit,
)
from agent_farm.runtimes.process import Command
from agent_farm.runtimes.result import Failure, RuntimeResult, Usage
from agent_farm.runtimes.skills import skill_commands

# -E -P instead of -I: the package may be installed for the user only
WORKER = (sys.executable, "-E", "-P", "-m", "agent_farm.runtimes.claude_worker")
MODES: Mapping[Permissions, str] = {"ask": "dontAsk", "edit": "acceptEdits", "all": "bypassPermissions"}
_REFUSALS = (
    "No conversation found",
    "already in use",
    "unknown option",
    "Invalid",
    "must be",
    "cannot be used",
)


async def run_claude(order: HeadlessOrder, env: Mapping[str, str], config: Path) -> RuntimeResult:
    command = Command(
        argv=WORKER,
        cwd=order.cwd,
        env={**order.env, **env},
        given=json.dumps(_worker_order(order, config)).encode(),
        scratch=order.scratch,
        timeout=order.timeout,
    )
    return await run_lines(command, ClaudeLines(order))


def _worker_order(order: HeadlessOrder, config: Path) -> dict[str, object]:
    allowed = [f"mcp__{order.mcp_server.name}"] if order.mcp_server else []
    if order.permissions == "edit":  # run unasked
        allowed += [f"Bash({command}:*)" for command in skill_commands(order.skills_home, order.cwd)]
    return {
        "prompt": order.prompt,
        "cli_path": _program(order),
        "cwd": str(order.cwd),
        "env": {},
        "add_dirs": [] if _is_told_already(order) else [str(order.cwd)],
        "model": order.model,
        "max_turns": order.max_turns,
        "permission_mode": MODES[order.permissions],
        "allowed_tools": allowed,
        "mcp_config": str(config),
        "settings": str(_settings_file(order)),
        "resume": order.conversation_id if order.resume else None,
        "session_id": None if order.resume else order.conversation_id,
        "extra_args": _role_flags(order),
    }


def _settings_file(order: HeadlessOrder) -> Path:
    """The bounds as rules; one that denies comes before all that allow."""
    bounds = order.bounds
    allow = [f"Read({_pattern(place)}/**)" for place in bounds.reads]
    deny = [rule for place in bounds.hides for rule in _rules("Read", place)]
    deny += [rule for place in (*bounds.keeps, *bounds.hides) for rule in _rules("Edit", place)]
    path = order.scratch / "settings.json"
    replace_file(path, json.dumps({"permissions": {"allow": allow, "deny": deny}}))
    return path


def _rules(tool: str, place: Path) -> tuple[str, str]:
    """For a file and for all of a directory: which of the two it is may change."""
    return f"{tool}({_pattern(place)})", f"{tool}({_pattern(place)}/**)"


def _pattern(place: Path) -> str:
    """An absolute path begins with two slashes; the rest is read as in .gitignore."""
    return "/" + re.sub(r"([*?\[\]\\!#])", r"\\\1", str(place))


def _program(order: HeadlessOrder) -> str:
    """One path, since the SDK takes no more: a script with all words, where the command has several."""
    if len(order.command) == 1 and not order.extra_args:
        return order.command[0]
    script = order.scratch / "claude"
    words = f'{shlex.join(order.command)} "$@" {shlex.join(order.extra_args)}'
    replace_file(script, f"#!/bin/sh\nexec {words}\n", mode=0o700)
    return str(script)


def _role_flags(order: HeadlessOrder) -> dict[str, str | None]:
    """The role as a file, since arguments are short and seen by all."""
    if not order.system_prompt:
        return {}
    role = order.scratch / "role.md"
    replace_file(role, order.system_prompt)
    return {"append-system-prompt-file": str(role), "system-prompt-snapshot": "off"}


def _is_told_already(order: HeadlessOrder) -> bool:
    """Whether the system prompt is the directory's own CLAUDE.md, which would else be said twice."""
    if order.bounds.own == order.cwd:
        return True
    try:
        own = (order.cwd / "CLAUDE.md").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return True
    return own in order.system_prompt


class ClaudeLines(LineParser):
    counts_turns = False  # --max-turns

    def __init__(self, order: HeadlessOrder) -> None:
        super().__init__(order.max_turns)
        self._order = order

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "system" and event["subtype"] == "init":
            self._init(event["data"])
        elif kind == "system" and event["subtype"] == "api_retry":
            self._retry(event["data"])
        elif kind == "assistant" and event["turn"]:
            self.turns += 1
        elif kind == "text":
            self.output = event["text"]
        elif kind == "tool_use":
            self.call(event["id"], event["name"], event["input"])
        elif kind == "tool_result":
            self.answer(event["id"], text_of(event["content"]), is_error=event["error"])
        elif kind == "failed":
            self._failed(event)
        elif kind == "result":
            self._result(event)

    def _init(self, data: Event) -> None:
        self.conversation_id = data.get("session_id")
        for server in data.get("mcp_servers") or ():
            if server.get("status") in ("failed", "needs-auth"):
                reason = "refused the token" if server["status"] == "needs-auth" else "does not answer"
                self.fail("mcp-unreachable", f"MCP server {server.get('name')} {reason}")

    def _retry(self, data: Event) -> None:
        """A refused key is tried ten times, for minutes; a login may have been renewed after the first."""
        status = data.get("error_status")
        if status in (401, 403) and number(data.get("attempt")) > 1:
            self.is_hopeless = True
            self.fail("not-logged-in", f"the API refuses the key or login: {status} {data.get('error')}")

    def _failed(self, event: Event) -> None:
        said = last_line(event["stderr"]) or last_line(event["message"])
        refused = any(word in event["stderr"] + event["message"] for word in _REFUSALS)
        self.failure = self.failure or Failure("refused-argument" if refused else "failed", said)

    def _cost(self, total: object) -> float | None:
        """This run's part: the CLI's total counts the whole conversation."""
        if not isinstance(total, int | float):
            return None
        spent = spent_since(self._order, self.conversation_id, {"cost": float(total)})
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
            found = api_failure(event.get("api_error_status"), message)
            refused = any(word in message for word in _REFUSALS)
            self.fail("refused-argument" if refused else found.kind, found.message)

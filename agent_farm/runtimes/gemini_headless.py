"""Gemini headless: the command line, and what is made of its events."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from agent_farm.runtimes.base import HeadlessOrder, Permissions
from agent_farm.runtimes.lines import Event, LineParser, api_failure, last_line, number, run_lines, text_of
from agent_farm.runtimes.process import Command
from agent_farm.runtimes.result import Failure, RuntimeResult, Usage
from agent_farm.runtimes.skills import skill_paths

MODES: Mapping[Permissions, str] = {"ask": "default", "edit": "auto_edit", "all": "yolo"}
_NOT_LOGGED_IN, _BAD_INPUT, _UNTRUSTED = 41, 42, 55


async def run_gemini(order: HeadlessOrder, env: Mapping[str, str], lock: list[str]) -> RuntimeResult:
    argv = [*order.command, "--approval-mode", MODES[order.permissions], "-o", "stream-json", *lock]
    argv += ["--extensions", "none"]
    if order.permissions == "edit":
        # one is enough to be offered the shell tool at all; what may run is said by the policy file
        for script in skill_paths(order.skills_home, order.cwd)[:1]:
            argv += ["--allowed-tools", f"run_shell_command({script})"]
    for place in order.bounds.reads:
        if place.is_dir():
            argv += ["--include-directories", str(place)]
    if order.model:
        argv += ["--model", order.model]
    if order.conversation_id:
        argv += ["--resume" if order.resume else "--session-id", order.conversation_id]
    command = Command(
        argv=(*argv, *order.extra_args),
        cwd=order.cwd,
        env=env,
        given=order.prompt.encode("utf-8", "surrogateescape"),
        scratch=order.scratch,
        timeout=order.timeout,
    )
    return await run_lines(command, GeminiLines(order.max_turns))


class GeminiLines(LineParser):
    _warning = ""

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "init":
            self.conversation_id = event.get("session_id")
        elif kind == "message" and event.get("role") == "assistant":
            self._said(event)
        elif kind == "tool_use":
            self.speaks()
            self.output = ""
            self.call(event["tool_id"], event["tool_name"], event.get("parameters"))
        elif kind == "tool_result":
            failed = event.get("status") != "success"
            result = event.get("output") or event.get("error")
            self.answer(event["tool_id"], text_of(result), is_error=failed)
        elif kind == "error":
            self._failed(event)
        elif kind == "result":
            self._result(event)

    def explain(self, stderr: str, exit_code: int) -> Failure:
        lines = [line.strip() for line in stderr.splitlines() if re.match(r"\s*(Error|Unknown arg)", line)]
        said = _message(stderr) or next(iter(lines), last_line(stderr)) or f"ended with exit code {exit_code}"
        if exit_code == _NOT_LOGGED_IN:
            return Failure("not-logged-in", _what_it_misses(stderr) or said)
        refused = exit_code in (_BAD_INPUT, _UNTRUSTED) or "Unknown argument" in stderr
        return Failure("refused-argument" if refused else "failed", said)

    def _said(self, event: Event) -> None:
        self.speaks()
        self.output += event.get("content") or ""

    def _failed(self, event: Event) -> None:
        if event.get("severity") == "error":
            self.fail("api-error", str(event.get("message")))
        else:
            self._warning = str(event.get("message"))

    def _result(self, event: Event) -> None:
        stats = event.get("stats") or {}
        self.finished = True
        cached = number(stats.get("cached"))
        self.usage = Usage(
            input_tokens=max(0, number(stats.get("input_tokens")) - cached),
            output_tokens=number(stats.get("output_tokens")),
            cache_read_tokens=cached,
        )
        if event.get("status") == "error":
            error = event.get("error") or {}
            message = str(error.get("message") or error.get("type"))
            self.failure = self.failure or api_failure(_status(message), message)
        elif self._warning and not self.output.strip():  # it stopped itself, and calls that a success
            self.fail("failed", self._warning)


def _what_it_misses(stderr: str) -> str:
    """The variables it names over several lines, without the advice after them."""
    found = re.search(r"When using .*?(?=\nUpdate your environment|\Z)", stderr, re.DOTALL)
    return " ".join(found[0].split())[:500] if found else ""


def _status(message: str) -> int | None:
    found = re.search(r"\b([45]\d\d)\b", message)
    return int(found[1]) if found else None


def _message(stderr: str) -> str | None:
    """The message of the error object that it prints last."""
    begin = stderr.rfind('{\n  "session_id"')
    try:
        return str(json.loads(stderr[begin:])["error"]["message"]) if begin >= 0 else None
    except (ValueError, KeyError):
        return None

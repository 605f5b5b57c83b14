"""Parses the headless output of Gemini CLI, and finds out why it ended."""

from __future__ import annotations

import json
import re

from agent_farm.runtimes.lines import Event, LineParser, status_in, text_of, usage_of
from agent_farm.runtimes.result import Failure

_NOT_LOGGED_IN, _BAD_INPUT, _UNTRUSTED = 41, 42, 55


class GeminiEvents(LineParser):
    refusals = ("Unknown argument",)
    error_line = "Error|Unknown arg"
    _warning = ""

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "init":
            self.conversation_id = event.get("session_id")
        elif kind == "message" and event.get("role") == "assistant":
            self.speaks()
            self.output += event.get("content") or ""
        elif kind == "tool_use":
            self.speaks()
            self.output = ""
            self.call(event["tool_id"], event["tool_name"], event.get("parameters"))
        elif kind == "tool_result":
            result = event.get("output") or event.get("error")
            self.answer(event["tool_id"], text_of(result), is_error=event.get("status") != "success")
        elif kind == "error" and event.get("severity") == "error":
            self.fail("api-error", str(event.get("message")))
        elif kind == "error":
            self._warning = str(event.get("message"))
        elif kind == "result":
            self._result(event)

    def _result(self, event: Event) -> None:
        stats = event.get("stats") or {}
        self.finished = True
        self.usage = usage_of(stats.get("input_tokens"), stats.get("output_tokens"), stats.get("cached"))
        if event.get("status") == "error":
            error = event.get("error") or {}
            message = str(error.get("message") or error.get("type"))
            self.fail_api(status_in(message), message)
        elif self._warning and not self.output.strip():  # it stopped by itself, and calls that a success
            self.fail("failed", self._warning)

    def explain(self, stderr: str, exit_code: int) -> Failure:
        found = super().explain(stderr, exit_code)
        said = _error_object(stderr) or found.message
        if exit_code == _NOT_LOGGED_IN:
            return Failure("not-logged-in", _what_it_misses(stderr) or said)
        return Failure("refused-argument" if exit_code in (_BAD_INPUT, _UNTRUSTED) else found.kind, said)


def _what_it_misses(stderr: str) -> str:
    """The variables that it names over several lines, without the advice that follows."""
    found = re.search(r"When using .*?(?=\nUpdate your environment|\Z)", stderr, re.DOTALL)
    return " ".join(found[0].split())[:500] if found else ""


def _error_object(stderr: str) -> str | None:
    """The message in the error object that it prints last."""
    begin = stderr.rfind('{\n  "session_id"')
    try:
        return str(json.loads(stderr[begin:])["error"]["message"]) if begin >= 0 else None
    except (ValueError, KeyError, RecursionError):
        return None

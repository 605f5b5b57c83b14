"""Parses `opencode run --format json`."""

from __future__ import annotations

from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.lines import Event, LineParser, last_line, number, text_of
from agent_farm.runtimes.result import Failure, Usage


class OpencodeEvents(LineParser):
    refusals = ("Unknown argument", "Session not found", "not found", "Invalid")

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self._tokens = {"input": 0, "output": 0, "read": 0, "write": 0}

    def event(self, event: Event) -> None:
        self.conversation_id = event.get("sessionID") or self.conversation_id
        kind, part = event.get("type"), event.get("part") or {}
        if kind == "step_start":
            self.turns += 1
            self.output = ""
        elif kind == "text":
            self.output += part.get("text") or ""
        elif kind == "tool_use":
            state = part.get("state") or {}
            failed = state.get("status") == "error"
            self.call(part["callID"], part["tool"], state.get("input"))
            self.answer(part["callID"], text_of(state.get("error" if failed else "output")), is_error=failed)
        elif kind == "step_finish":
            self._end_step(part)
        elif kind == "error":
            error = event.get("error") or {}
            data = error.get("data") or {}
            self.fail_api(data.get("statusCode"), str(data.get("message") or error.get("name")))

    def explain(self, stderr: str, exit_code: int) -> Failure:
        if "Options:" in stderr:
            return Failure("refused-argument", "opencode did not take its arguments and printed its help")
        found = super().explain(stderr, exit_code)
        errors = [line for line in stderr.splitlines() if "Error" in line]
        return Failure(found.kind, last_line("\n".join(errors)) or found.message)

    def _end_step(self, part: Event) -> None:
        tokens = part.get("tokens") or {}
        cache = tokens.get("cache") or {}
        for name, source in (("input", tokens), ("output", tokens), ("read", cache), ("write", cache)):
            self._tokens[name] += number(source.get(name))
        self.usage = Usage(
            input_tokens=self._tokens["input"],
            output_tokens=self._tokens["output"],
            cache_read_tokens=self._tokens["read"],
            cache_write_tokens=self._tokens["write"],
        )
        self.cost = (self.cost or 0.0) + float(part.get("cost") or 0)
        self.finished = part.get("reason") != "tool-calls"

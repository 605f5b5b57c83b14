"""opencode headless: the command line, and what is made of its events."""

from __future__ import annotations

from collections.abc import Mapping

from agent_farm.runtimes.base import HeadlessOrder
from agent_farm.runtimes.lines import Event, LineParser, api_failure, last_line, number, run_lines, text_of
from agent_farm.runtimes.process import Command
from agent_farm.runtimes.result import Failure, RuntimeResult, Usage

_REFUSALS = ("Unknown argument", "Session not found", "not found", "Invalid")


async def run_opencode(order: HeadlessOrder, env: Mapping[str, str]) -> RuntimeResult:
    argv = [*order.command, "run", "--format", "json"]
    if order.model:
        argv += ["--model", order.model]
    if order.resume and order.conversation_id:
        argv += ["--session", order.conversation_id]
    command = Command(
        argv=(*argv, *order.extra_args),
        cwd=order.cwd,
        env=env,
        given=order.prompt.encode("utf-8", "surrogateescape"),
        scratch=order.scratch,
        timeout=order.timeout,
    )
    return await run_lines(command, OpencodeLines(order.max_turns))


class OpencodeLines(LineParser):
    def __init__(self, max_turns: int) -> None:
        super().__init__(max_turns)
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
            self._tool(part)
        elif kind == "step_finish":
            self._step(part)
        elif kind == "error":
            self._error(event.get("error") or {})

    def explain(self, stderr: str, exit_code: int) -> Failure:
        if "Options:" in stderr:
            return Failure("refused-argument", "opencode did not take its arguments and printed its help")
        lines = [line.strip() for line in stderr.splitlines() if "Error" in line]
        said = last_line("\n".join(lines)) or last_line(stderr) or f"ended with exit code {exit_code}"
        return Failure("refused-argument" if any(w in stderr for w in _REFUSALS) else "failed", said)

    def _tool(self, part: Event) -> None:
        state = part.get("state") or {}
        self.call(part["callID"], part["tool"], state.get("input"))
        failed = state.get("status") == "error"
        self.answer(part["callID"], text_of(state.get("error" if failed else "output")), is_error=failed)

    def _step(self, part: Event) -> None:
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

    def _error(self, error: Event) -> None:
        data = error.get("data") or {}
        failure = api_failure(data.get("statusCode"), str(data.get("message") or error.get("name")))
        self.fail(failure.kind, failure.message)

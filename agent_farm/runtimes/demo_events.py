"""Parses the headless output of the demo agent."""

from __future__ import annotations

from agent_farm.runtimes.lines import Event, LineParser
from agent_farm.runtimes.result import Usage


class DemoEvents(LineParser):
    refusals = ("demo: ",)

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "start":
            self.conversation_id = event["conversation_id"]
        elif kind == "turn":
            self.turns += 1
        elif kind == "tool":
            key = str(len(self.calls))
            self.call(key, event["name"], event["input"])
            self.answer(key, event["result"], is_error=event["is_error"])
        elif kind == "result" and "error" in event:
            self.fail(event["error"]["kind"], event["error"]["message"])
        elif kind == "result":
            self.output, self.cost, self.finished = event["output"], event["cost"], True
            self.usage = Usage(**event["usage"])

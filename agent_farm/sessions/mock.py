"""MockSpawner: replaces a Spawner in users' tests, and starts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_farm.sessions.session import SpawnerResult
from agent_farm.sessions.trigger_sources import require_trigger_source


@dataclass(frozen=True, slots=True)
class Invocation:
    prompt: str
    context: str | None = None
    trigger_source: str = "external"
    max_turns: int = 20


class MockSpawner:
    """Records every trigger; answers with the first response whose key is in the prompt."""

    def __init__(self, responses: Mapping[str, SpawnerResult] | None = None) -> None:
        self.responses = dict(responses or {})
        self.invocations: list[Invocation] = []

    async def trigger(
        self,
        prompt: str,
        context: str | None = None,
        *,
        trigger_source: str = "external",
        max_turns: int = 20,
    ) -> SpawnerResult:
        require_trigger_source(trigger_source)
        self.invocations.append(Invocation(prompt, context, trigger_source, max_turns))
        for part, response in self.responses.items():
            if part in prompt:
                return response
        return SpawnerResult()

    def stop_accepting(self) -> None:
        """Does nothing, because nothing is queued here."""

    async def drain(self, timeout: float = 30.0) -> bool:
        return True

    def assert_triggered(self, times: int | None = None) -> None:
        """Fails unless there was a trigger, or exactly `times`."""
        count = len(self.invocations)
        if times is None and count == 0:
            raise AssertionError("expected a trigger, saw none")
        if times is not None and count != times:
            raise AssertionError(f"expected {times} triggers, saw {count}: {self._prompts()}")

    def assert_prompted_with(self, text: str) -> None:
        """Fails unless some trigger's prompt contains `text`."""
        if not any(text in invocation.prompt for invocation in self.invocations):
            raise AssertionError(f"no prompt contains {text!r}; saw {self._prompts()}")

    def _prompts(self) -> list[str]:
        return [invocation.prompt for invocation in self.invocations]

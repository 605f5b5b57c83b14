"""The report command in the form in which each CLI wants its hooks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from agent_farm.runtimes.base import InteractiveOrder

HOOK_SECONDS = 10


def hook_events(states: Mapping[str, str], more: Iterable[str] = ()) -> tuple[str, ...]:
    """The events that have to be hooked for these states, each once."""
    return tuple(dict.fromkeys((*more, *(event.partition(":")[0] for event in states))))


def argv_hooks(order: InteractiveOrder, events: Iterable[str]) -> dict[str, list[object]]:
    """Claude's form with an argv: the command is executed directly, no shell reads a path of ours."""
    command, *arguments = order.hook_argv("-")
    entry = {"type": "command", "command": command, "args": arguments, "timeout": HOOK_SECONDS}
    return {event: [{"hooks": [entry]}] for event in events}


def shell_command(order: InteractiveOrder, event: str = "-") -> str:
    """The report command for CLIs that only take a shell command line, every word quoted."""
    return shlex.join(order.hook_argv(event))

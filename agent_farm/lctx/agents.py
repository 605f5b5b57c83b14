"""What an agent is: two command templates and what its process gets."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_farm.errors import AgentFarmError

OUTPUTS = ("text", "claude", "codex", "gemini")
_KEYS = ("ask", "chat", "env", "pass", "stdin", "output", "each_source")


@dataclass(frozen=True, slots=True)
class Agent:
    """A template is split into an argv before anything is filled in, and never meets a shell.

    `stdin` is the file `ask` gives as standard input, `passes` are variables of the user's that it may
    have. `output` says what its standard output is: `text` is the answer as it stands, the others are
    event streams from which progress and the answer are read. `each_source` is added once for each source,
    with its path for `{path}`.
    """

    name: str
    ask: tuple[str, ...] | None = None
    chat: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    passes: tuple[str, ...] = ()
    stdin: str | None = None
    output: str = "text"
    each_source: tuple[str, ...] = ()

    def command(self, verb: str) -> tuple[str, ...]:
        found = self.ask if verb == "ask" else self.chat
        if not found:
            raise AgentFarmError(
                f"Agent {self.name} has no {verb} command",
                hint=f'add "{verb}" to agents.{self.name} in config.json',
            )
        return found


def agent_from(name: str, entry: Any) -> Agent:
    """The agent of one entry of `agents`; ValueError says what is wrong with it."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"agents.{name} must be an object")
    if unknown := [key for key in entry if key not in _KEYS]:
        raise ValueError(f"agents.{name}.{unknown[0]} is unknown; there are {', '.join(_KEYS)}")
    output = entry.get("output", "text")
    if output not in OUTPUTS:
        raise ValueError(f"agents.{name}.output must be one of {', '.join(OUTPUTS)}")
    stdin = entry.get("stdin")
    if not isinstance(stdin, str | None):
        raise ValueError(f"agents.{name}.stdin must be a string")
    return Agent(
        name=name,
        ask=_words(name, "ask", entry.get("ask")),
        chat=_words(name, "chat", entry.get("chat")),
        env=_variables(name, entry.get("env", {})),
        passes=_names(name, entry.get("pass", [])),
        stdin=stdin,
        output=output,
        each_source=_words(name, "each_source", entry.get("each_source")) or (),
    )


def _words(name: str, verb: str, template: Any) -> tuple[str, ...] | None:
    if template is None:
        return None
    if isinstance(template, list) and all(isinstance(word, str) for word in template):
        words = template
    elif isinstance(template, str):
        try:
            words = shlex.split(template)
        except ValueError as error:
            raise ValueError(f"agents.{name}.{verb}: {error}") from error
    else:
        raise ValueError(f"agents.{name}.{verb} must be a command, as one string or as a list of words")
    if not words or not words[0]:
        raise ValueError(f"agents.{name}.{verb} is empty")
    if any("\0" in word for word in words):
        raise ValueError(f"agents.{name}.{verb} contains a NUL character")
    return tuple(words)


def _variables(name: str, env: Any) -> dict[str, str]:
    if not isinstance(env, Mapping) or not all(isinstance(value, str) for value in env.values()):
        raise ValueError(f"agents.{name}.env must be an object of strings")
    if bad := [key for key, value in env.items() if not key or "=" in key or "\0" in key + value]:
        raise ValueError(f"agents.{name}.env has an impossible variable {bad[0]!r}")
    return dict(env)


def _names(name: str, passes: Any) -> tuple[str, ...]:
    if not isinstance(passes, list) or not all(isinstance(item, str) for item in passes):
        raise ValueError(f"agents.{name}.pass must be a list of variable names")
    return tuple(passes)

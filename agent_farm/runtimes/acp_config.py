"""An agent that speaks the Agent Client Protocol, as declared in agent_runtime.json.

    {"runtimes": {"goose": {"acp": ["goose", "acp"], "env": ["OPENAI_API_KEY"]}}}

`acp` is its command: a first word with a slash is a file of the repository, and {server} stands for the name
of the farm's MCP server, for agents that can be told which server to use. `env` names the variables it gets;
`set` adds variables, in which {home} is a directory of its own that lasts as long as its conversations.
`auth` is the method by which it should log in. `modes` gives the session mode for ask, edit and all, if the
agent has to be put into one. `install` says how to get it. `timeout_minutes` (default 30) limits a turn.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_farm.runtimes.cli import Permissions

_Word = Annotated[str, Meta(min_length=1)]
_Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class AcpRuntime(msgspec.Struct, frozen=True):
    """`name` is the key of its entry."""

    acp: Annotated[tuple[_Word, ...], Meta(min_length=1)]
    env: tuple[_Variable, ...] = ()
    set: dict[_Variable, str] = {}
    modes: dict[Permissions, _Word] = {}
    auth: str = ""
    install: str = ""
    timeout_minutes: Annotated[float, Meta(gt=0, le=366 * 24 * 60.0)] = 30.0
    name: str = ""

    @property
    def shown(self) -> str:
        """Everything that a person approves: a mode, too, since the agent may ask for nothing in it."""
        return "\n".join(
            [
                shlex.join(self.acp),
                *(f"{name}={shlex.quote(text)}" for name, text in self.set.items()),
                *([f"it gets {', '.join(self.env)}"] if self.env else []),
                *(f"with {permissions} its mode is {mode!r}" for permissions, mode in self.modes.items()),
                *([f"it logs in by {self.auth!r}"] if self.auth else []),
            ]
        )


def acp_runtime(root: Path, name: str, given: Any) -> AcpRuntime:
    """Raises ValueError, msgspec's included, if the entry is wrong."""
    entry = msgspec.convert(given, AcpRuntime)
    program, *words = entry.acp
    if os.sep in program and not os.path.isabs(program):
        if not (root / program).resolve().is_relative_to(root):
            raise ValueError(f"{program!r} leads out of the repository - at `$.acp`")
        program = str(root / program)
    if any("\0" in word for word in (program, *words, *entry.set.values())):
        raise ValueError("it contains a NUL character - at `$`")
    return msgspec.structs.replace(entry, acp=(program, *words), name=name)

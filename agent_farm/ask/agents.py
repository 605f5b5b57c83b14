"""What an agent is: two command templates and what its process gets. The shipped agents are runtimes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Annotated, Any

import msgspec

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes import ADAPTERS, get_adapter
from agent_farm.runtimes.cli import Ask, Cli

DEFAULT_AGENT = "claude-code"
CURSOR = Cli(
    name="cursor-agent",
    binary="cursor-agent",
    install="curl https://cursor.com/install -fsS | bash",
    ask=Ask(
        command="cursor-agent -p --trust --mode=ask --output-format text -- {prompt}",
        chat="cursor-agent",
        stdin=None,
        files={".cursor/mcp.json": "{}"},
        variables=("CURSOR_*",),
    ),
)
_Words = str | tuple[str, ...] | None


class Agent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A template is split into an argv before anything is filled in, and never reaches a shell.

    `stdin` is the file that `ask` gives as standard input, `passes` are variables of the user's that the
    agent may have. `output` says what its standard output is: with `text` it is the answer, the other values
    are event streams from which progress and the answer are read. `each_source` is added once for each
    source, with the source's path for `{path}`.
    """

    name: str
    ask: _Words = None
    chat: _Words = None
    env: dict[Annotated[str, msgspec.Meta(pattern=r"^[^=\x00]+$")], str] = {}
    passes: tuple[str, ...] = msgspec.field(default=(), name="pass")
    stdin: str | None = None
    output: str = "text"
    each_source: _Words = None

    def __post_init__(self) -> None:
        for field in ("ask", "chat", "each_source"):
            msgspec.structs.force_setattr(self, field, _split(field, getattr(self, field)))
        if self.output != "text" and self.output not in (
            forms := [ask.output for _, ask in answering_clis()]
        ):
            raise ValueError(f"output must be one of {', '.join(dict.fromkeys(['text', *forms]))}")

    def command(self, verb: str) -> tuple[str, ...]:
        found = self.ask if verb == "ask" else self.chat
        if not found:
            raise AgentFarmError(
                f"Agent {self.name} has no {verb} command",
                hint=f'add "{verb}" to agents.{self.name} in config.json',
            )
        return tuple(found)


def agent_from(name: str, entry: Any) -> Agent:
    """The agent of one entry of `agents`; ValueError says what is wrong with it and where."""
    if isinstance(entry, Mapping):
        entry = {**_as_ours(entry), "name": name}
    try:
        return msgspec.convert(entry, Agent)
    except msgspec.ValidationError as error:
        place, text = f"`agents.{name}", str(error)
        raise ValueError(text.replace("`$", place) if "`$" in text else f"{text} - at {place}`") from error


def shipped_agents() -> dict[str, Agent]:
    return {
        cli.name: Agent(cli.name, ask.command, ask.chat, dict(ask.env), (), ask.stdin, ask.output)
        for cli, ask in answering_clis()
    }


def answering_clis() -> Iterator[tuple[Cli, Ask]]:
    """Every CLI whose description says how it answers a question."""
    for cli in (*(get_adapter(name).cli for name in ADAPTERS), CURSOR):
        if cli.ask:
            yield cli, cli.ask


def cli_of(command: str) -> tuple[Cli, Ask] | None:
    """The CLI that `command` runs, also in an agent that the user defined."""
    program = PurePath(command).name
    return next(((cli, ask) for cli, ask in answering_clis() if cli.binary == program), None)


def _as_ours(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Reads an entry in lctx's own form too: `commands.ask`, `commands.chat` and `addDirFlag`."""
    if not isinstance(entry.get("commands"), Mapping):
        return entry
    kept = {key: value for key, value in entry.items() if key not in ("commands", "addDirFlag", "mcp")}
    flag = entry.get("addDirFlag")
    return {**kept, **entry["commands"], **({"each_source": flag} if flag is not None else {})}


def _split(field: str, template: _Words) -> tuple[str, ...] | None:
    if template is None:
        return None
    try:
        words = tuple(shlex.split(template)) if isinstance(template, str) else template
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from error
    if not words or not words[0]:
        raise ValueError(f"{field} is empty")
    if any("\0" in word for word in words):
        raise ValueError(f"{field} contains a NUL character")
    return words

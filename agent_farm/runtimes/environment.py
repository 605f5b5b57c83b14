"""The environment of a runtime: only variables that are named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes import vendor_keys

ALWAYS = (
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "LANG",
    "TZ",
    "TERM",
    "COLORTERM",
    "TMUX",
    "TMUX_PANE",
    "TMPDIR",
    "TRACEPARENT",
)
ALWAYS_PREFIXES = ("LC_", "AF_")

# The session's own bearer token: new for each run, never inherited from the run that started this one.
MCP_TOKEN = "AF_MCP_TOKEN"


class MissingVariable(AgentFarmError):
    code = "missing-variable"


def allowed_environment(
    source: Mapping[str, str],
    *,
    key_names: Iterable[str] = (),
    declared: Iterable[str] = (),
    required: Iterable[str] = (),
) -> dict[str, str]:
    """The part of `source` that a runtime gets; MissingVariable names all of `required` that is not set."""
    needed = tuple(required)
    missing = [name for name in needed if not source.get(name)]
    if missing:
        raise MissingVariable(
            f"Required environment variable{'s' if len(missing) > 1 else ''} not set: {', '.join(missing)}",
            why="declared as required; nothing was started",
            hint=f"export {missing[0]}=…",
        )
    names = {*ALWAYS, *key_names, *declared, *needed}
    return {
        name: value
        for name, value in source.items()
        if (name in names or name.startswith(ALWAYS_PREFIXES)) and name != MCP_TOKEN
    }


def without_foreign_keys(env: Mapping[str, str], own: Iterable[str]) -> dict[str, str]:
    """`env` without the credentials for other AI providers."""
    foreign = vendor_keys() - set(own)
    return {name: value for name, value in env.items() if name not in foreign}

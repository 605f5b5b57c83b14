"""What a server may see of the environment that it is started from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agent_farm.runtimes import vendor_variables
from agent_farm.runtimes.environment import ALWAYS

# Of a terminal's variables only these: it passes on to a session what its runtime and its butler declare.
NAMES = (*ALWAYS, "TMUX_TMPDIR", "SSH_AUTH_SOCK", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
PREFIXES = ("LC_", "AF_", "XDG_", "OTEL_")
TERMINAL = ("TERM", "COLORTERM", "TMUX", "TMUX_PANE")
PRIVATE = ("AF_MCP_TOKEN", "AF_SESSION", "AF_BUTLER", "AF_BUILDER_ID", "AF_RUN", "AF_RUN_DIR", "AF_WORKTREE")


def server_environment(environ: Mapping[str, str], declared: Iterable[str] = ()) -> dict[str, str]:
    """The server's own environment: what a session may ask for, and nothing of the terminal it came from."""
    names = {*NAMES, *declared, *vendor_variables(environ)} - {*TERMINAL, "TRACEPARENT", *PRIVATE}
    asked = asked_variables(environ)
    return {
        name: value
        for name, value in environ.items()
        if name in names or name in asked or (name.startswith(PREFIXES) and name not in PRIVATE)
    }


def carried_environment(root: Path, butler: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """What of the caller's own environment goes with what is asked of a server that was started elsewhere.

    The same that the server would have, had it been started from here, and the terminal's names, which a
    runtime may always have.
    """
    given = server_environment(environ, declared_variables(root, butler))
    return given | {name: environ[name] for name in TERMINAL if name in environ}


def declared_variables(root: Path, butler: str | None) -> tuple[str, ...]:
    from agent_farm.sessions.butlers import load_butler

    known = load_butler(root, butler)
    return (*known.required_env, *known.optional_env, *known.module_credentials)


def asked_variables(environ: Mapping[str, str]) -> set[str]:
    """What the CLIs of `ask_sources` read, which run in the server, too."""
    from agent_farm.ask.agent_environment import user_variables

    return set(user_variables(environ))

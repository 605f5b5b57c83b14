"""Which variables a server gets from its environment, and from the shell that calls it."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from agent_farm.runtimes import vendor_variables
from agent_farm.runtimes.environment import ALWAYS

# The only ones it takes from a terminal; a session gets those that its runtime and its butler declare.
NAMES = (*ALWAYS, "TMUX_TMPDIR", "SSH_AUTH_SOCK", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
PREFIXES = ("LC_", "AF_", "XDG_", "OTEL_")
TERMINAL = ("TERM", "COLORTERM", "TMUX", "TMUX_PANE")
SHELL_HEADER = "Af-Shell"
PRIVATE = ("AF_MCP_TOKEN", "AF_SESSION", "AF_BUTLER", "AF_BUILDER_ID", "AF_RUN", "AF_RUN_DIR", "AF_WORKTREE")


def server_environment(environ: Mapping[str, str], declared: Iterable[str] = ()) -> dict[str, str]:
    """The server's own environment: what a session may need, but nothing of the terminal it was started
    from."""
    names = {*NAMES, *declared, *vendor_variables(environ)} - {*TERMINAL, "TRACEPARENT", *PRIVATE}
    asked = asked_variables(environ)
    return {
        name: value
        for name, value in environ.items()
        if name in names or name in asked or (name.startswith(PREFIXES) and name not in PRIVATE)
    }


def declared_variables(root: Path) -> tuple[str, ...]:
    from agent_farm.sessions.butlers import load_all_butlers

    return tuple(
        name
        for one in load_all_butlers(root)
        for name in (*one.required_env, *one.optional_env, *one.module_credentials)
    )


def asked_variables(environ: Mapping[str, str]) -> set[str]:
    """The variables that the CLIs for `ask_sources` read, which also run in the server."""
    from agent_farm.ask.agent_environment import user_variables

    return set(user_variables(environ))


class Shell(msgspec.Struct, frozen=True):
    """The shell from which a program asks: those of its variables that a session may need, its directory, and
    the session of which it is a process."""

    environ: Mapping[str, str] = {}
    directory: str | None = None
    session: str | None = None


def own_shell(root: Path, more: Mapping[str, str]) -> Shell:
    """This shell, with the variables that a server started here would have, and the names for the terminal,
    which a runtime may always have. A request cannot carry what is not UTF-8: the server's own value is then
    used."""
    whole = {**os.environ, **more}
    environ = server_environment(whole, declared_variables(root))
    environ |= {name: whole[name] for name in TERMINAL if name in whole}
    told = {name: value for name, value in environ.items() if _is_utf8(name) and _is_utf8(value)}
    session = os.environ.get("AF_SESSION")
    return Shell(told, _own_directory(), session if session and _is_utf8(session) else None)


def _own_directory() -> str | None:
    """Where this process is; if a request cannot carry that, the next directory above it in the same
    checkout."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return None
    while not _is_utf8(str(here)):
        if (here / ".git").exists():
            return None
        here = here.parent
    return str(here)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def header_of(shell: Shell) -> str:
    return base64.b64encode(msgspec.json.encode(shell)).decode()


def told_shell(header: str) -> Shell:
    """Raises ValueError if the header is invalid."""
    return msgspec.json.decode(base64.b64decode(header, validate=True), type=Shell)

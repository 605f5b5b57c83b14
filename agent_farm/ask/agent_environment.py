"""The environment of an agent: variables by name, with all that the user's own login to its CLI may need.

Why by name: docs/decisions/0010-environment-of-ask.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agent_farm.ask.agents import answering_clis, cli_of
from agent_farm.errors import AgentFarmError
from agent_farm.runtimes.environment import allowed_environment

INSIDE = "AF_INSIDE_ASK"

# How this machine reaches the network, and where the user's CLIs keep their logins.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
_USER = (
    *("LOGNAME", "DBUS_SESSION_BUS_ADDRESS", "XDG_*", "NO_COLOR"),
    *(*_PROXIES, *map(str.lower, _PROXIES), *_CERTIFICATES),
)


def agent_environment(source: Mapping[str, str], command: str, passes: Iterable[str]) -> dict[str, str]:
    """The part of `source` that `command` gets; `passes` are more names, which may end in `*`."""
    found = cli_of(command)
    own: tuple[str, ...] = ()
    if found:
        cli, ask = found
        own = (*cli.every_variable, *ask.variables, *ask.more_variables(source))
    return {**allowed_environment(source, declared=_names(source, (*_USER, *own, *passes))), INSIDE: "1"}


def user_variables(source: Mapping[str, str]) -> Iterator[str]:
    """The part of `source` that any of the known CLIs may need."""
    return _names(source, (*_USER, *(name for _, ask in answering_clis() for name in ask.variables)))


def require_outside(source: Mapping[str, str]) -> None:
    """Refuses an agent that is answering a question itself: asking another would be a loop."""
    if source.get(INSIDE):
        raise AgentFarmError(
            "af ask and af chat cannot run inside an answer of their own",
            why=f"{INSIDE} is set: this process was started to answer a question",
        )


def _names(source: Mapping[str, str], wanted: Iterable[str]) -> Iterator[str]:
    for name in wanted:
        if name.endswith("*"):
            yield from (known for known in source if known.startswith(name[:-1]))
        else:
            yield name

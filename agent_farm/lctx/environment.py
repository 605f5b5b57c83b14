"""The environment of an agent: by name, with all that the user's own login to that CLI may need.

Why by name: docs/decisions/0010-environment-of-ask.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes import vendor_keys
from agent_farm.runtimes.environment import allowed_environment

INSIDE = "AF_INSIDE_ASK"

# How the user's machine reaches the network and where the user's CLIs keep their logins.
_USER = (
    *("LOGNAME", "DBUS_SESSION_BUS_ADDRESS", "XDG_*", "NO_COLOR"),
    *(
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
_CLOUD = ("AWS_*", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION")
_OWN: Mapping[str, tuple[str, ...]] = {
    "claude": (
        *("ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*"),
        *("CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_MAX_RETRIES", "API_TIMEOUT_MS", "VERTEX_REGION_*", *_CLOUD),
    ),
    "codex": ("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_*"),
    "gemini": ("GEMINI_*", "GOOGLE_*"),
    "opencode": ("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_API_KEY", *vendor_keys(), *_CLOUD),
    "cursor-agent": ("CURSOR_*",),
}


def agent_environment(source: Mapping[str, str], command: str, passes: Iterable[str]) -> dict[str, str]:
    """What `command` gets of `source`; `passes` are more names, with `*` at the end for a family of them."""
    program = PurePath(command).name
    wanted = (*_USER, *_OWN.get(program, ()), *passes, *_from_configuration(program, source))
    return {**allowed_environment(source, declared=_names(source, wanted)), INSIDE: "1"}


def user_variables(source: Mapping[str, str]) -> Iterator[str]:
    """What of `source` any of the known CLIs may need."""
    return _names(source, (*_USER, *(name for names in _OWN.values() for name in names)))


def require_outside(source: Mapping[str, str]) -> None:
    """An agent that answers a question does not ask one: that would be a loop."""
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


def _from_configuration(program: str, source: Mapping[str, str]) -> tuple[str, ...]:
    if program == "codex":
        from agent_farm.runtimes.codex_lock import provider_keys

        return provider_keys(source)
    if program == "opencode":
        from agent_farm.runtimes.opencode_config import referenced_variables

        return referenced_variables(source)
    return ()

"""OpenAI Codex: `codex` in a pane, `codex exec --json` headless."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from agent_farm.runtimes.bounds import NONE
from agent_farm.runtimes.cli import (
    HOOK_SECONDS,
    Ask,
    Cli,
    Environment,
    Home,
    Hooks,
    Screen,
    Start,
    Words,
)
from agent_farm.runtimes.codex_lock import (
    KEYS,
    config_home,
    foreign_settings_off,
    inline_toml,
    key_of,
    offered_models,
    provider_keys,
    servers_off,
)
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.foreign import directories_between
from agent_farm.runtimes.mcp_config import TOOL_SECONDS, McpServer
from agent_farm.runtimes.parsers import parser_in
from agent_farm.runtimes.plain_text import fits_argument, order_to_read_role
from agent_farm.runtimes.worktree_facts import git_directories, main_checkout

# connectors and plugins bring in MCP servers
_FEATURES_OFF = ("features.apps=false", "features.plugins=false")


def _login(env: Environment, model: str | None) -> str | None:
    if key_of(env) or (config_home(env) / "auth.json").exists():
        return None
    return "codex is not logged in; run codex login, or set CODEX_API_KEY"


def server_forms(servers: Sequence[McpServer], *, required: bool) -> dict[str, dict[str, object]]:
    """With `required`, a run ends if its server is dead."""
    form: dict[str, object] = {
        "default_tools_approval_mode": "approve",
        "omit_tools_from": ["deferred"],
        "tool_timeout_sec": TOOL_SECONDS,
        **({"required": True} if required else {}),
    }
    token = {"bearer_token_env_var": MCP_TOKEN}
    return {server.name: {"url": server.url, **form, **(token if server.token else {})} for server in servers}


def _flags(start: Start) -> list[str]:
    settings = [*_provider(start.env), *_FEATURES_OFF]
    # commands that the model runs need neither the key nor the token
    settings.append(f"shell_environment_policy.exclude={inline_toml([*KEYS, MCP_TOKEN])}")
    settings += _pane_settings(start) if start.in_pane else _headless_settings(start)
    if start.role and not key_of(start.env):
        settings.append(_role_argument(start))
    flags = []
    if not start.in_pane:  # a private home has nothing of the user's
        flags += [] if key_of(start.env) else ["--ignore-user-config"]
        flags += [] if _is_bound(start) else ["-s", SANDBOX[start.permissions]]
    return flags + [word for setting in settings for word in ("-c", setting)]


def _provider(env: Environment) -> list[str]:
    """A provider of our own, because a key in the environment does not log the terminal interface in."""
    key = key_of(env)
    if key is None:
        return []
    provider = {
        "name": "OpenAI",
        "base_url": env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1",
        "env_key": key,
        "wire_api": "responses",
        "request_max_retries": 3,
        "stream_max_retries": 3,
    }
    return ["model_provider=farm_key", f"model_providers.farm_key={inline_toml(provider)}"]


def _pane_settings(start: Start) -> list[str]:
    places = list(directories_between(start.top, start.cwd))
    # for a linked worktree, codex reads the hooks of the main checkout
    if main := main_checkout(start.top):
        places += [main / place.relative_to(start.top) for place in places]
    directories = [place / ".codex" for place in places]
    if not key_of(start.env):
        directories.append(config_home(start.env))
    off = foreign_settings_off(directories, keep=[server.name for server in start.servers])
    hook = {"type": "command", "command": start.report_line, "timeout": HOOK_SECONDS}
    hooks = {event: [{"hooks": [hook]}] for event in HOOKS.events}
    if start.server and start.prompt is not None and start.await_tools:
        wait = {"type": "command", "command": shlex.join(start.await_tools), "timeout": HOOK_SECONDS}
        hooks["UserPromptSubmit"].append({"hooks": [wait]})
    trusted = {str(place): {"trust_level": "trusted"} for place in (start.top, start.cwd)}
    return [
        # whole tables, because in a dotted key codex takes quotes as part of the name
        f"mcp_servers={inline_toml({**off.servers, **server_forms(start.servers, required=False)})}",
        f"hooks={inline_toml({**hooks, 'state': off.hook_states})}",
        f"notice.model_migrations={inline_toml(_seen_offers(start))}",
        f"projects={inline_toml(trusted)}",
        "check_for_update_on_startup=false",
        "notify=[]",  # otherwise a program of the user's
        *_may_commit(start),
    ]


def _seen_offers(start: Start) -> dict[str, str]:
    """Only needed if the model may not be the newest, which codex uses by default."""
    if key_of(start.env) and not start.model and not start.extra_args:
        return {}
    return offered_models(start.command or (), start.env, start.home)


def _headless_settings(start: Start) -> list[str]:
    settings = _may_write(start)
    if start.servers:
        settings.append(f"mcp_servers={inline_toml(server_forms(start.servers, required=True))}")
    return settings


def _is_bound(start: Start) -> bool:
    return start.permissions == "edit" and start.bounds != NONE


def _may_write(start: Start) -> list[str]:
    """`-s workspace-write`, also with bounds. Unless told otherwise, codex makes /tmp writable, too."""
    if not _is_bound(start):
        return ["sandbox_workspace_write.exclude_slash_tmp=true", *_may_commit(start)]
    bounds = start.bounds
    files = {":slash_tmp": "read", **{str(place): "write" for place in git_directories(start.cwd)}}
    files |= {str(place): "read" for place in bounds.keeps} | {str(place): "deny" for place in bounds.hides}
    profile = {"extends": ":workspace", "filesystem": files}
    return ['default_permissions="farm"', f"permissions={inline_toml({'farm': profile})}"]


def _may_commit(start: Start) -> list[str]:
    """Names both git directories, because codex makes each read-only unless it is a writable root itself."""
    if start.permissions != "edit":
        return []
    writable = [str(place) for place in git_directories(start.top)]
    return [f"sandbox_workspace_write.writable_roots={inline_toml(writable)}"]


def _files(start: Start) -> dict[Path, str]:
    """The role as a setting: a private home allows any length and hides it; else it is an argument."""
    if key_of(start.env):
        role = f"{_role_setting(start.role)}\n" if start.role else "# everything is on the command line\n"
        return {start.home / "config.toml": role}
    return {_role_file(start): start.role}


def _role_argument(start: Start) -> str:
    """A role that is too long for an argument has to be read from its file."""
    whole = _role_setting(start.role)
    return whole if fits_argument(whole) else _role_setting(order_to_read_role(start.role, _role_file(start)))


def _role_setting(role: str) -> str:
    return f"developer_instructions={inline_toml(role)}"


def _role_file(start: Start) -> Path:
    return start.place / "codex-role.md"


HOOKS = Hooks(
    states={
        "UserPromptSubmit": "working",
        "PermissionRequest": "waiting",
        "PostToolUse": "working",
        "Stop": "idle",
    },
    submitted="UserPromptSubmit",
    unsure=("PermissionRequest",),
)

SANDBOX = {"ask": "read-only", "edit": "workspace-write", "all": "danger-full-access"}
_LOCK = (
    "-c 'mcp_servers={codex_mcp_off}' -c notify=[] -c features.hooks=false"
    f" {' '.join(f'-c {feature}' for feature in _FEATURES_OFF)}"
)

CODEX = Cli(
    name="codex",
    title="OpenAI Codex",
    provider="openai",
    binary="codex",
    install="npm install -g @openai/codex",
    oldest="0.166.0",
    tried="0.169.0",
    keys=KEYS,
    variables=("OPENAI_BASE_URL", "CODEX_HOME"),
    login=_login,
    has_key=lambda env: key_of(env) is not None,
    home=Home("CODEX_HOME", conversations=("sessions",), only_with_key=True),
    own_home=".codex",
    talk=("sessions/*/*/*/rollout-*{id}.jsonl",),
    # without --no-daemon it leaves servers behind that outlive the builder
    pane=(
        "--no-daemon --dangerously-bypass-hook-trust {permissions} {flags} {model} {extra}"
        " {conversation} {prompt}"
    ),
    headless="exec --json --skip-git-repo-check {flags} {model} {extra} {conversation} -",
    words=Words(model=("-m", "{}"), resume=("resume", "{}"), prompt=("--", "{}")),
    permissions={
        "ask": ("-s", SANDBOX["ask"], "-a", "on-request"),
        "edit": ("-s", SANDBOX["edit"], "-a", "on-request"),
        "all": ("--dangerously-bypass-approvals-and-sandbox",),
    },
    ask=Ask(
        command=(
            f"codex exec --skip-git-repo-check --ephemeral --json -s read-only {_LOCK}"
            " -c shell_environment_policy.inherit=core -"
        ),
        chat=(
            f"codex --no-daemon -s read-only -a on-request {_LOCK}"
            """ -c 'projects={"{directory}"={trust_level="trusted"}}'"""
        ),
        instructions=("AGENTS.md", "AGENTS.override.md"),
        output="codex",
        variables=("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_*"),
        placeholders={"codex_mcp_off": lambda env, directories: servers_off(env)},
        more_variables=provider_keys,
    ),
    config=lambda servers: {"mcp_servers": server_forms(servers, required=True)},
    config_file="config.toml",
    transports=("http",),
    flags=_flags,
    files=_files,
    events=parser_in("codex_events", "CodexEvents"),
    temporary={"headless": "TMPDIR"},  # it runs no sandboxed command if its home is below TMPDIR
    hooks=HOOKS,
    screen=Screen(
        ready=r"^› *$",
        draft=r"^› (?!\d\. )\S",
        dialog=r"^› 1\. |[Pp]ress enter to confirm|enter to (?:submit|continue)",
        working=r"esc to interrupt",
        failed=r"^■ (?!Conversation interrupted).*",
        interrupted=r"^■ Conversation interrupted",
    ),
    limited=r"hit your usage limit(?:.*?try again at (?P<until>[^.]+))?",
)


class CodexAdapter(CliAdapter):
    cli = CODEX

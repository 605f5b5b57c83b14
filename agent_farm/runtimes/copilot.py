"""GitHub Copilot CLI, started with a configuration home of its own, for which it needs a token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from agent_farm.runtimes.cli import (
    HOOK_SECONDS,
    Cli,
    Environment,
    Home,
    Hooks,
    Screen,
    Start,
    Words,
)
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.foreign import load_json, settings_between, table
from agent_farm.runtimes.mcp_config import McpServer, claude_form, locked_name
from agent_farm.runtimes.parsers import parser_in
from agent_farm.runtimes.skills import skill_paths

TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
PROVIDER = "COPILOT_PROVIDER_BASE_URL"
_PROJECT_SERVERS = (".mcp.json", ".github/mcp.json", ".vscode/mcp.json", ".copilot/mcp-config.json")


def usage_file(start: Start) -> Path:
    return start.place / "usage.json"


def _login(env: Environment, model: str | None) -> str | None:
    if any(env.get(name) for name in ("COPILOT_GITHUB_TOKEN", *TOKENS, PROVIDER)):
        return None
    return (
        "copilot has no token: set COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN "
        "(where gh is logged in: export GH_TOKEN=$(gh auth token)), or "
        "COPILOT_PROVIDER_BASE_URL for another provider (the login of copilot itself cannot be used: "
        "it lives in a configuration home that cannot be locked)"
    )


def _pick_keys(env: Environment, model: str | None) -> tuple[str, ...]:
    """With another provider it needs none of GitHub's tokens, which its commands would see."""
    unused = TOKENS if env.get(PROVIDER) else ()
    return tuple(name for name in COPILOT.every_variable if name not in unused)


def _config(servers: Sequence[McpServer]) -> dict[str, object]:
    return claude_form(servers, tools=["*"])


def project_servers(top: Path, cwd: Path) -> list[str]:
    """Servers of the project, which it adds in a trusted folder."""
    names: list[str] = []
    for file in settings_between(top, cwd, *_PROJECT_SERVERS):
        document = load_json(file)
        names += [*table(document, "mcpServers"), *table(document, "servers")]
    return list(dict.fromkeys(names))


def _server_name(server: McpServer, start: Start) -> str:
    """A project's server with the farm's own name would win, and be switched off together with it."""
    taken = start.in_pane and server.name in project_servers(start.top, start.cwd)
    return locked_name(server, start.run) if taken else server.name


def _files(start: Start) -> dict[Path, str]:
    """A complete configuration home: server, hooks, role, and the folders that it need not ask about."""
    hook = {"type": "command", "bash": start.report_line, "timeoutSec": HOOK_SECONDS}
    hooks = {event: [hook] for event in HOOKS.events} if start.in_pane else {}
    folders = dict.fromkeys((str(start.top), str(start.cwd))) if start.in_pane else ()
    settings = {"hooks": hooks, "banner": "never", "autoUpdate": False, "memory": False}
    return {
        start.home / "mcp-config.json": json.dumps(_config(start.servers)),
        start.home / "config.json": json.dumps({"trustedFolders": list(folders), "banner": "never"}),
        start.home / "settings.json": json.dumps(settings),
        start.home / "copilot-instructions.md": start.role,
    }


def _flags(start: Start) -> list[str]:
    if start.in_pane:
        flags = [
            word for name in project_servers(start.top, start.cwd) for word in ("--disable-mcp-server", name)
        ]
    else:
        flags = ["--usage-output-file", str(usage_file(start))]
        if start.permissions == "edit":
            flags += [f"--allow-tool=shell({script}:*)" for script in _skill_scripts(start)]
    return flags + [f"--allow-tool={server.name}" for server in start.servers]


def _skill_scripts(start: Start) -> list[str]:
    """Its rules match a command's first word, so each script that may run is named; `sh FILE` cannot be."""
    paths = skill_paths(start.skills, start.cwd, executable=True)
    return [*paths, *(f"./{path}" for path in paths if not path.startswith("/"))]


HOOKS = Hooks(
    states={
        "UserPromptSubmit": "working",
        "Notification:permission_prompt": "waiting",
        "Notification:elicitation_dialog": "waiting",
        "PostToolUse": "working",
        "Stop": "idle",
        "ErrorOccurred": "waiting",
    },
    ready_states={"SessionStart": "idle"},
    submitted="UserPromptSubmit",
    unsure=("Notification",),
    kind=("notification_type",),
    conversation=("session_id", "sessionId"),
    reason=("message", "error"),
    writers={"create": "path", "edit": "path"},
)

COPILOT = Cli(
    name="copilot",
    title="GitHub Copilot CLI",
    binary="copilot",
    install="npm install -g @github/copilot",
    oldest="1.0.82",
    tried="1.0.102",
    keys=("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"),
    variables=(
        *TOKENS,
        PROVIDER,
        "COPILOT_PROVIDER_TYPE",
        "COPILOT_PROVIDER_WIRE_API",
        "COPILOT_PROVIDER_MODEL_ID",
        "COPILOT_PROVIDER_WIRE_MODEL",
        "COPILOT_PROVIDER_AZURE_API_VERSION",
        "COPILOT_MODEL",
        "COPILOT_OFFLINE",
        "COPILOT_GH_HOST",
        "GH_HOST",
    ),
    pick_keys=_pick_keys,
    login=_login,
    home=Home("COPILOT_HOME", conversations=("session-state", "session-store.db", "session-store.db-wal")),
    pane=(
        "--no-auto-update --disable-builtin-mcps {permissions} {flags} {model} {conversation}"
        " {extra} {prompt}"
    ),
    headless=(
        "--no-auto-update --no-color --output-format json --disable-builtin-mcps --no-ask-user"
        " {permissions} {flags} {model} {conversation} {extra}"
    ),
    words=Words(begin=("--session-id={}",), resume=("--resume={}",), prompt=("--interactive={}",)),
    permissions={
        "ask": (),
        "edit": ("--allow-tool=write",),
        "all": ("--allow-all-tools", "--allow-all-paths", "--allow-all-urls"),
    },
    config=_config,
    config_file="mcp-config.json",
    server_name=_server_name,
    flags=_flags,
    files=_files,
    environment=lambda start: {"COPILOT_AUTO_UPDATE": "false"},
    events=parser_in("copilot_events", "CopilotEvents"),
    hooks=HOOKS,
    screen=Screen(
        ready=r"^ *[❯>] *$",
        draft=r"^ *[❯>] +(?!\d\. )\S",
        dialog=r"↑/?↓ to (?:navigate|select)|[Ee]nter to (?:select|confirm)",
        working=r"[Ee]sc (?:to )?(?:cancel|interrupt)|^ *\S Working\b",
        failed=r"^ *[✗×] .*",
        interrupted=r"^ *● Operation (?:cancelled|aborted) by user",
    ),
    limited=(
        r"(?:hit|reached|exceeded) (?:a|the|your)(?: \w+)? rate limit\b"
        r"(?:.*?(?:reset on (?P<until>[^.]+?)(?: or switch|\.|$)|try again in (?P<after>[^.]+)))?"
    ),
    interrupt="Escape Escape",
    notices_dead_mcp=False,
    reads_beside=False,
)


class CopilotAdapter(CliAdapter):
    cli = COPILOT

"""GitHub Copilot CLI, in a pane and headless, from a configuration home of its own: so it needs a token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from agent_farm.disk import make_directory, replace_file
from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes.base import (
    HeadlessOrder,
    InteractiveOrder,
    Permissions,
    RuntimeAdapter,
    ScreenPatterns,
)
from agent_farm.runtimes.copilot_lock import foreign_servers
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.hook_forms import HOOK_SECONDS, hook_events, shell_command
from agent_farm.runtimes.mcp_config import TOOL_SECONDS, McpServer, as_servers, locked_name
from agent_farm.runtimes.plain_text import INPUT_LINE
from agent_farm.runtimes.prompts import argument_for
from agent_farm.runtimes.result import RuntimeResult

TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
PROVIDER = (
    "COPILOT_PROVIDER_BASE_URL",
    "COPILOT_PROVIDER_TYPE",
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_PROVIDER_WIRE_API",
    "COPILOT_PROVIDER_MODEL_ID",
    "COPILOT_PROVIDER_WIRE_MODEL",
    "COPILOT_PROVIDER_AZURE_API_VERSION",
)
INTERACTIVE: Mapping[Permissions, tuple[str, ...]] = {
    "ask": (),
    "edit": ("--allow-tool=write",),
    "all": ("--allow-all-tools", "--allow-all-paths", "--allow-all-urls"),
}


class CopilotAdapter(RuntimeAdapter):
    name = "copilot"
    title = "GitHub Copilot CLI"
    binary_name = "copilot"
    install_hint = "npm install -g @github/copilot"
    oldest = "1.0.82"
    key_names = (*TOKENS, *PROVIDER, "COPILOT_MODEL", "COPILOT_OFFLINE", "GH_HOST", "COPILOT_GH_HOST")
    states: ClassVar[Mapping[str, str]] = {
        "UserPromptSubmit": "working",
        "Notification:permission_prompt": "waiting",
        "Notification:elicitation_dialog": "waiting",
        "PostToolUse": "working",
        "Stop": "idle",
        "ErrorOccurred": "waiting",
    }
    ready_states: ClassVar[Mapping[str, str]] = {"SessionStart": "idle"}
    submit_event = "UserPromptSubmit"
    conversation_files = ("copilot/session-state", "copilot/session-store.db", "copilot/session-store.db-wal")
    unsure_events = ("Notification",)
    reads_beside = False
    notices_dead_mcp = False
    own_words = INPUT_LINE
    screen = ScreenPatterns(
        ready=r"^ *[❯>] *$",
        draft=r"^ *[❯>] +(?!\d\. )\S",
        dialog=r"↑/?↓ to (?:navigate|select)|[Ee]nter to (?:select|confirm)",
        working=r"[Ee]sc (?:to )?(?:cancel|interrupt)|^ *\S Working\b",
        failed=r"^ *[✗×] .*",
        interrupted=r"^ *● Operation (?:cancelled|aborted) by user",
    )

    def login_problem(self, env: Mapping[str, str], model: str | None = None) -> str | None:
        if any(env.get(name) for name in (*TOKENS, "COPILOT_PROVIDER_BASE_URL")):
            return None
        return (
            "copilot has no token: set COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN "
            "(where gh is logged in: export GH_TOKEN=$(gh auth token)), or "
            "COPILOT_PROVIDER_BASE_URL for another provider (the login of copilot itself cannot be used: "
            "it lives in a configuration home that cannot be locked)"
        )

    def new_conversation_id(self) -> str:
        import uuid

        return str(uuid.uuid4())

    def permission_words(self, permissions: Permissions) -> str:
        return f"`{' '.join(INTERACTIVE[permissions])}`" if INTERACTIVE[permissions] else "it asks"

    def headless_permission_words(self, permissions: Permissions) -> str:
        skills = ", `--allow-tool=shell(…)` for each executable of `skills/`" if permissions == "edit" else ""
        words = " ".join(INTERACTIVE[permissions])
        return f"`{words}`{skills}" if words else "it refuses"

    def interactive(self, order: InteractiveOrder) -> Launch:
        home = order.run_directory / "copilot"
        argv = [*(self.find_command(order.env, order.command) or order.command or (self.binary_name,))]
        argv += ["--no-auto-update", "--disable-builtin-mcps", *INTERACTIVE[order.permissions]]
        foreign = foreign_servers(order.worktree, order.cwd)
        for name in foreign:
            argv += ["--disable-mcp-server", name]
        server = unlike(order.mcp_server, foreign, order.run)
        if server:
            argv.append(f"--allow-tool={server.name}")
        if order.model:
            argv += ["--model", order.model]
        if order.conversation_id:
            argv.append(f"--{'resume' if order.resume else 'session-id'}={order.conversation_id}")
        argv += order.extra_args
        if order.prompt is not None:
            argv.append("--interactive=" + argument_for(order, self.own_words, prefix="--interactive="))
        events = hook_events(self.states, ("SessionStart", "SessionEnd"))
        hook = {"type": "command", "bash": shell_command(order), "timeoutSec": HOOK_SECONDS}
        files = home_files(
            home,
            server,
            order.role_text or "",
            trusted=[order.worktree, order.cwd],
            hooks={event: [hook] for event in events},
        )
        return Launch(tuple(argv), order.cwd, self._env(order.env, home, server), files)

    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        from agent_farm.runtimes.copilot_headless import run_copilot

        home = order.home / "copilot"
        make_directory(home)
        for file in home_files(home, order.mcp_server, order.system_prompt, trusted=[], hooks={}):
            make_directory(file.path.parent)
            replace_file(file.path, file.content)
        return await run_copilot(order, self._env(order.env, home, order.mcp_server))

    def build_config_file(
        self, mcp_servers: Mapping[str, McpServer | Mapping[str, object]], tmp_dir: Path
    ) -> Path:
        path = tmp_dir / "mcp-config.json"
        replace_file(path, json.dumps(server_forms(as_servers(mcp_servers)), indent=2))
        return path

    def _env(self, env: Mapping[str, str], home: Path, server: McpServer | None) -> dict[str, str]:
        token = server.environment() if server else {}
        return {**env, "COPILOT_HOME": str(home), "COPILOT_AUTO_UPDATE": "false", **token}


def unlike(server: McpServer | None, foreign: tuple[str, ...], nonce: str) -> McpServer | None:
    """A server of the project under the farm's own name would win, and be switched off with it."""
    return replace(server, name=locked_name(server, nonce)) if server and server.name in foreign else server


def server_forms(servers: tuple[McpServer, ...]) -> dict[str, object]:
    return {"mcpServers": {server.name: _server(server) for server in servers}}


def home_files(
    home: Path,
    server: McpServer | None,
    role: str,
    *,
    trusted: list[Path],
    hooks: Mapping[str, object],
) -> tuple[LaunchFile, ...]:
    """A whole configuration home: its server, its hooks, its role, and the folders it need not ask about."""
    servers = server_forms((server,) if server else ())
    folders = list(dict.fromkeys(str(folder) for folder in trusted))
    settings = {"hooks": hooks, "banner": "never", "autoUpdate": False, "memory": False}
    return (
        LaunchFile(home / "mcp-config.json", json.dumps(servers)),
        LaunchFile(home / "config.json", json.dumps({"trustedFolders": folders, "banner": "never"})),
        LaunchFile(home / "settings.json", json.dumps(settings)),
        LaunchFile(home / "copilot-instructions.md", role),
    )


def _server(server: McpServer) -> dict[str, object]:
    form: dict[str, object] = {
        "type": server.transport,
        "url": server.url,
        "tools": ["*"],
        "timeout": TOOL_SECONDS * 1000,
    }
    if server.token:
        form["headers"] = {"Authorization": f"Bearer ${{{MCP_TOKEN}}}"}
    return form

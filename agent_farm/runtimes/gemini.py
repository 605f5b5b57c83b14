"""Gemini CLI, in a pane and headless. It runs from a configuration home of its own, so it needs a key."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from agent_farm.disk import make_directory, replace_file
from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes.base import (
    HeadlessOrder,
    InteractiveOrder,
    Permissions,
    RuntimeAdapter,
    ScreenPatterns,
)
from agent_farm.runtimes.bounds import NONE
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.gemini_lock import foreign_hooks
from agent_farm.runtimes.git_identity import identity_environment
from agent_farm.runtimes.hook_forms import HOOK_SECONDS, hook_events, shell_command
from agent_farm.runtimes.mcp_config import TOOL_SECONDS, McpServer, as_servers, locked_name
from agent_farm.runtimes.plain_text import INPUT_LINE
from agent_farm.runtimes.prompts import argument_for
from agent_farm.runtimes.result import RuntimeResult
from agent_farm.runtimes.skills import skill_commands

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
INTERACTIVE: Mapping[Permissions, str] = {"ask": "default", "edit": "auto_edit", "all": "yolo"}


class GeminiAdapter(RuntimeAdapter):
    name = "gemini"
    title = "Gemini CLI"
    binary_name = "gemini"
    install_hint = "npm install -g @google/gemini-cli"
    oldest = "0.53.0"
    key_names = (
        *KEYS,
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_APPLICATION_CREDENTIALS",
    )
    states: ClassVar[Mapping[str, str]] = {
        "BeforeAgent": "working",
        "Notification:ToolPermission": "waiting",
        "AfterTool": "working",
        "AfterAgent": "idle",
        "AfterAgent:[no response text]": "waiting",  # an API error, or Esc: the screen tells
    }
    ready_states: ClassVar[Mapping[str, str]] = {"SessionStart": "idle"}
    hooks_want_json = True
    submit_event = "BeforeAgent"
    conversation_files = ("gemini/.gemini/tmp", "gemini/.gemini/history", "gemini/.gemini/projects.json")
    unsure_events = ("Notification", "AfterAgent")
    notices_dead_mcp = False
    own_words = INPUT_LINE
    screen = ScreenPatterns(
        ready=r"^ *> +Type your message",
        draft=r"^ *> +(?!Type your message)\S",
        dialog=r"● 1\. ",
        working=r"esc to cancel|Executing Hook",
        failed=r"^ *✕ .*",
        interrupted=r"^ *ℹ Request cancelled",
    )

    def login_problem(self, env: Mapping[str, str], model: str | None = None) -> str | None:
        if auth_type(env):
            return None
        return (
            "gemini has no key: set GEMINI_API_KEY, or GOOGLE_GENAI_USE_VERTEXAI and what it needs "
            "(a Google login cannot be used: it lives in a configuration home that cannot be locked)"
        )

    def new_conversation_id(self) -> str:
        import uuid

        return str(uuid.uuid4())

    def permission_words(self, permissions: Permissions) -> str:
        return f"`--approval-mode {INTERACTIVE[permissions]}`"

    def headless_permission_words(self, permissions: Permissions) -> str:
        skills = ", a policy for `skills/` scripts" if permissions == "edit" else ""
        return f"`--approval-mode {INTERACTIVE[permissions]}`{skills}"

    def interactive(self, order: InteractiveOrder) -> Launch:
        home = order.run_directory / "gemini"
        argv = [*(self.find_command(order.env, order.command) or order.command or (self.binary_name,))]
        argv += [
            "--approval-mode",
            INTERACTIVE[order.permissions],
            *allowed_servers(order.mcp_server, order.run),
        ]
        argv += ["--extensions", "none"]
        if order.model:
            argv += ["--model", order.model]
        if order.conversation_id:
            argv += ["--resume" if order.resume else "--session-id", order.conversation_id]
        argv += order.extra_args
        if order.prompt is not None:
            argv.append(
                "--prompt-interactive=" + argument_for(order, self.own_words, prefix="--prompt-interactive=")
            )
        settings = self._settings(order.env, order.mcp_server, order.run, order.worktree, order.cwd)
        command = {
            "name": "agent-farm",  # what it shows while the hook runs, instead of the whole command
            "type": "command",
            "command": shell_command(order),
            "timeout": HOOK_SECONDS * 1000,
        }
        events = hook_events(self.states, ("SessionStart", "SessionEnd"))
        settings["hooks"] = {event: [{"hooks": [command]}] for event in events}
        files = [LaunchFile(home / ".gemini" / "settings.json", json.dumps(settings))]
        files.append(LaunchFile(home / ".gemini" / "GEMINI.md", order.role_text or ""))
        return Launch(
            tuple(argv), order.cwd, self._env(order.env, home, order.mcp_server, order.cwd), tuple(files)
        )

    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        import tomli_w

        from agent_farm.runtimes.gemini_headless import run_gemini

        home = order.home / "gemini"
        nonce = os.urandom(6).hex()
        make_directory(home / ".gemini")
        settings = self._settings(order.env, order.mcp_server, nonce, order.cwd, order.cwd)
        replace_file(home / ".gemini" / "settings.json", json.dumps(settings))
        replace_file(home / ".gemini" / "GEMINI.md", order.system_prompt)
        make_directory(home / ".gemini" / "policies")
        rules = [*(skills_rules(order) if order.permissions == "edit" else ()), *bounds_rules(order)]
        policy = tomli_w.dumps({"rule": rules} if rules else {})
        replace_file(home / ".gemini" / "policies" / "skills.toml", policy)
        env = self._env(order.env, home, order.mcp_server, order.cwd)
        return await run_gemini(order, env, allowed_servers(order.mcp_server, nonce))

    def build_config_file(
        self, mcp_servers: Mapping[str, McpServer | Mapping[str, object]], tmp_dir: Path
    ) -> Path:
        path = tmp_dir / "settings.json"
        form = {"mcpServers": {server.name: server_form(server) for server in as_servers(mcp_servers)}}
        replace_file(path, json.dumps(form, indent=2))
        return path

    def _env(self, env: Mapping[str, str], home: Path, server: McpServer | None, cwd: Path) -> dict[str, str]:
        ours = {
            "GEMINI_CLI_HOME": str(home),
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",  # its relaunched child survives a hang-up
        }
        identity = identity_environment(cwd, env)  # its commands run with GIT_CONFIG_GLOBAL=/dev/null
        return {**env, **ours, **identity, **own_key(env), **(server.environment() if server else {})}

    def _settings(
        self, env: Mapping[str, str], server: McpServer | None, nonce: str, top: Path, cwd: Path
    ) -> dict[str, Any]:
        servers = {locked_name(server, nonce): server_form(server)} if server else {}
        return {
            "security": {"auth": {"selectedType": auth_type(env)}},
            "advanced": {"ignoreLocalEnv": True, "excludedEnvVars": [MCP_TOKEN]},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "ui": {"hideTips": True, "hideBanner": True},
            "ide": {"hasSeenNudge": True, "enabled": False},
            # AGENTS.md is what other runtimes read in the same tree
            "context": {"fileName": ["GEMINI.md", "AGENTS.md"]},
            "hooksConfig": {"enabled": True, "notifications": False, "disabled": foreign_hooks(top, cwd)},
            "mcpServers": servers,
        }


def skills_rules(order: HeadlessOrder) -> list[dict[str, object]]:
    """A rule for each way to start each script: one repetition within another it refuses."""
    return [
        {
            "toolName": "run_shell_command",
            "commandRegex": f'{re.escape(command)}{given}"',
            "decision": "allow",
            "priority": 900,
        }
        for command in skill_commands(order.skills_home, order.cwd)
        for given in ("", " [A-Za-z0-9_./= -]*")
    ]


def bounds_rules(order: HeadlessOrder) -> list[dict[str, object]]:
    """What it may read it would write, too: what it writes has to lie in its directory, by a plain path."""
    bounds, cwd = order.bounds, re.escape(f"{order.cwd}/")
    if bounds == NONE or order.permissions == "all":
        return []
    kept = [re.escape(os.path.relpath(place, order.cwd)) for place in bounds.keeps]
    patterns = [
        r"[^\"]*(\.\.|//|/\./)",
        rf"/(?!{cwd[1:]})",
        *(rf"({cwd}|\./)?{name}[\"/]" for name in kept),
    ]
    return [
        {
            "toolName": ["write_file", "replace"],
            "argsPattern": f'"file_path":"{pattern}',
            "decision": "deny",
            "priority": 950,
        }
        for pattern in patterns
    ]


def auth_type(env: Mapping[str, str]) -> str | None:
    if env.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in ("true", "1"):
        return "vertex-ai"
    return "gemini-api-key" if any(env.get(name) for name in KEYS) else None


def own_key(env: Mapping[str, str]) -> dict[str, str]:
    """Under the one name by which it takes a key; with Vertex the other name keeps its own meaning."""
    if env.get("GEMINI_API_KEY") or auth_type(env) != "gemini-api-key":
        return {}
    return {"GEMINI_API_KEY": env["GOOGLE_API_KEY"]}


def allowed_servers(server: McpServer | None, nonce: str) -> list[str]:
    """Without a server the allowed name is one that nobody has."""
    name = locked_name(server or McpServer("none", ""), nonce)
    return ["--allowed-mcp-server-names", name]


def server_form(server: McpServer) -> dict[str, object]:
    where: dict[str, object] = {
        "url": server.url,
        "type": server.transport,
        "trust": True,
        "timeout": TOOL_SECONDS * 1000,
    }
    if server.token:
        where["headers"] = {"Authorization": f"Bearer ${{{MCP_TOKEN}}}"}
    return where

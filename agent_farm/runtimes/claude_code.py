"""Claude Code: `claude` in a pane, `claude_agent_sdk.query()` headless."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from agent_farm.disk import replace_file
from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes.base import (
    HeadlessOrder,
    InteractiveOrder,
    Permissions,
    RuntimeAdapter,
    ScreenPatterns,
)
from agent_farm.runtimes.hook_forms import argv_hooks, hook_events
from agent_farm.runtimes.mcp_config import McpServer, as_servers, claude_form
from agent_farm.runtimes.plain_text import INPUT_LINE
from agent_farm.runtimes.prompts import argument_for
from agent_farm.runtimes.result import RuntimeResult
from agent_farm.runtimes.worktree_files import main_checkout

_FIRST_PROMPT_WAITS = 0.7  # seconds; a local server has answered by then where nothing else is at work
_AT_MOST = 6  # times as long
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
# instead of a login of its own it uses the cloud's
CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
MODES: Mapping[Permissions, str] = {"ask": "manual", "edit": "acceptEdits", "all": "bypassPermissions"}


class ClaudeCodeAdapter(RuntimeAdapter):
    name = "claude-code"
    title = "Claude Code"
    binary_name = "claude"
    install_hint = "npm install -g @anthropic-ai/claude-code"
    oldest = "2.1.326"
    key_names = (*KEYS, *CLOUDS, "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR")
    # Auto-compaction starts a session too (SessionStart:compact): it is not listed, so it changes nothing.
    submit_event = "UserPromptSubmit"
    conversation_files = ("claude/projects",)
    unsure_events = ("PermissionRequest",)
    states: ClassVar[Mapping[str, str]] = {
        "UserPromptSubmit": "working",
        "PermissionRequest": "waiting",
        "PostToolUse": "working",
        "PostToolUseFailure": "working",
        "Stop": "idle",
        "StopFailure": "waiting",
    }
    ready_states: ClassVar[Mapping[str, str]] = {
        "SessionStart:startup": "idle",
        "SessionStart:resume": "idle",
        "SessionStart:clear": "idle",
    }
    own_words = INPUT_LINE
    screen = ScreenPatterns(
        ready=r"^\s*❯\s*$",
        draft=r"^\s*❯\s+(?!\d\. )\S",
        dialog=r"Esc to cancel|Enter to confirm|Do you want to",
        working=r"esc to interrupt|^ *[·✢✳✶✻✽*] \S.*…",
        shows_work=True,
    )

    def find_command(
        self, env: Mapping[str, str], command: Sequence[str] | None = None
    ) -> tuple[str, ...] | None:
        """The configured command, else `claude` on PATH, else the one inside claude_agent_sdk."""
        found = super().find_command(env, command)
        if found or command:
            return found
        bundled = bundled_claude()
        return (str(bundled),) if bundled else None

    def login_problem(self, env: Mapping[str, str], model: str | None = None) -> str | None:
        if has_key(env) or (config_home(env) / ".credentials.json").exists() or _keychain_login(env):
            return None
        return (
            "claude is not logged in; run claude once and log in, or set ANTHROPIC_API_KEY, or for a cloud "
            "CLAUDE_CODE_USE_BEDROCK or CLAUDE_CODE_USE_VERTEX"
        )

    def new_conversation_id(self) -> str:
        import uuid

        return str(uuid.uuid4())

    def permission_words(self, permissions: Permissions) -> str:
        return f"`--permission-mode {MODES[permissions]}`"

    def headless_permission_words(self, permissions: Permissions) -> str:
        from agent_farm.runtimes import claude_headless

        skills = ", `skills/` scripts" if permissions == "edit" else ""
        return f"`--permission-mode {claude_headless.MODES[permissions]}`{skills}"

    def interactive(self, order: InteractiveOrder) -> Launch:
        files = [
            self._mcp_file(order),
            LaunchFile(order.run_directory / "claude-settings.json", json.dumps(self._settings(order))),
        ]
        env = {**order.env, **session_environment(order.permissions)}
        if order.mcp_server:
            env |= order.mcp_server.environment()
        if has_key(order.env):
            home = order.run_directory / "claude"
            env["CLAUDE_CONFIG_DIR"] = str(home)
            main = main_checkout(order.worktree)  # it keeps its answers under the repository's own checkout
            places = (order.worktree, order.cwd, *([main] if main else []))
            seeded = seeded_config(order.env, projects=places)
            files.append(LaunchFile(home / ".claude.json", json.dumps(seeded)))
        role = order.run_directory / "claude-role.md"
        if order.role_text:
            files.append(LaunchFile(role, order.role_text))
        argv = [*self._command(order), *self._flags(order), *order.extra_args]
        if order.role_text:
            argv += ["--append-system-prompt-file", str(role), "--system-prompt-snapshot", "off"]
        if order.conversation_id:
            argv += ["--resume" if order.resume else "--session-id", order.conversation_id]
        if order.prompt is not None:
            argv += ["--", argument_for(order, self.own_words)]
        return Launch(tuple(argv), order.cwd, env, tuple(files))

    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        from agent_farm.runtimes.claude_headless import run_claude

        env = session_environment(order.permissions)
        if has_key(order.env):
            home = order.home / "claude"
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(home / ".claude.json", json.dumps(seeded_config(order.env)))
            env["CLAUDE_CONFIG_DIR"] = str(home)
        servers = {order.mcp_server.name: order.mcp_server} if order.mcp_server else {}
        return await run_claude(order, env, self.build_config_file(servers, order.scratch))

    def build_config_file(
        self, mcp_servers: Mapping[str, McpServer | Mapping[str, object]], tmp_dir: Path
    ) -> Path:
        path = tmp_dir / "mcp.json"
        replace_file(path, json.dumps(claude_form(as_servers(mcp_servers)), indent=2))
        return path

    def _command(self, order: InteractiveOrder) -> tuple[str, ...]:
        return self.find_command(order.env, order.command) or order.command or (self.binary_name,)

    def _flags(self, order: InteractiveOrder) -> list[str]:
        """The lock: our MCP file alone, no user or project settings, yet the project's CLAUDE.md."""
        flags = ["--strict-mcp-config", "--mcp-config", str(order.run_directory / "claude-mcp.json")]
        flags += ["--setting-sources", "", "--settings", str(order.run_directory / "claude-settings.json")]
        for directory in dict.fromkeys((order.worktree, order.cwd)):
            flags += ["--add-dir", str(directory)]
        flags += ["--permission-mode", MODES[order.permissions]]
        if order.model:
            flags += ["--model", order.model]
        if order.mcp_server:
            flags += ["--allowedTools", f"mcp__{order.mcp_server.name}"]
        return flags

    def _mcp_file(self, order: InteractiveOrder) -> LaunchFile:
        servers = (order.mcp_server,) if order.mcp_server else ()
        return LaunchFile(order.run_directory / "claude-mcp.json", json.dumps(claude_form(servers)))

    def _settings(self, order: InteractiveOrder) -> dict[str, object]:
        events = hook_events(self.states, ("SessionStart", "SessionEnd"))
        hooks = argv_hooks(order, events)
        if order.mcp_server and order.prompt is not None:
            # It sends its first prompt before it has asked the server for its tools, unless a hook holds it.
            wait = {"type": "command", "command": "sleep", "args": [_hold()], "timeout": 10}
            hooks["SessionStart"] = [*hooks["SessionStart"], {"hooks": [wait]}]
        return {"hooks": hooks, "skipDangerousModePermissionPrompt": True}


def _hold() -> str:
    """Seconds, more of them the more processes there are for each processor."""
    try:
        busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        busy = 1.0
    return f"{_FIRST_PROMPT_WAITS * min(max(busy, 1.0), _AT_MOST):.1f}"


def has_key(env: Mapping[str, str]) -> bool:
    """Whether the environment alone logs it in; then a private configuration home is safe."""
    wants_cloud = any(env.get(name, "").lower() in ("1", "true", "yes", "on") for name in CLOUDS)
    return wants_cloud or any(env.get(name) for name in KEYS)


def config_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CLAUDE_CONFIG_DIR") or Path(env.get("HOME", "/")) / ".claude")


def seeded_config(env: Mapping[str, str], projects: Sequence[Path] = ()) -> dict[str, object]:
    """A `.claude.json` under which no theme, onboarding or key question waits.

    Files outside of `projects` that their CLAUDE.md imports are left out, unasked.
    """
    answered = {
        "hasClaudeMdExternalIncludesApproved": False,
        "hasClaudeMdExternalIncludesWarningShown": True,
    }
    approved = [key[-20:] for key in [env.get("ANTHROPIC_API_KEY")] if key]
    return {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": approved, "rejected": []},
        "projects": {str(place): answered for place in projects},
    }


def session_environment(permissions: Permissions) -> dict[str, str]:
    env = {
        "CLAUDE_CODE_SANDBOXED": "1",  # the folder is trusted: the farm made it
        "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",  # --setting-sources "" leaves CLAUDE.md out
        "DISABLE_AUTOUPDATER": "1",
    }
    if permissions == "all" and os.geteuid() == 0:
        env["IS_SANDBOX"] = "1"  # claude refuses bypassPermissions to root without it
    return env


def bundled_claude() -> Path | None:
    """The `claude` inside claude_agent_sdk, found without the second that importing it takes."""
    from importlib.util import find_spec

    spec = find_spec("claude_agent_sdk")
    if spec is None or not spec.origin:
        return None
    binary = Path(spec.origin).parent / "_bundled" / "claude"
    return binary if os.access(binary, os.X_OK) else None


def _keychain_login(env: Mapping[str, str]) -> bool:
    """On macOS the login is in the keychain; what can be seen is that someone logged in once."""
    import sys

    return sys.platform == "darwin" and (Path(env.get("HOME", "/")) / ".claude.json").exists()

"""OpenAI Codex: `codex` in a pane, `codex exec --json` headless."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
from agent_farm.runtimes.bounds import NONE
from agent_farm.runtimes.codex_lock import FEATURES_OFF, foreign_settings_off
from agent_farm.runtimes.codex_role import config_with_role, role_argument
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.hook_forms import HOOK_SECONDS, hook_events, shell_command
from agent_farm.runtimes.mcp_config import TOOL_SECONDS, McpServer, as_servers
from agent_farm.runtimes.plain_text import INPUT_LINE
from agent_farm.runtimes.prompts import argument_for
from agent_farm.runtimes.result import RuntimeResult
from agent_farm.runtimes.toml_inline import inline_toml
from agent_farm.runtimes.worktree_files import directories_between, git_directories, main_checkout

KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
DEFAULT_URL = "https://api.openai.com/v1"
SANDBOX: Mapping[Permissions, str] = {
    "ask": "read-only",
    "edit": "workspace-write",
    "all": "danger-full-access",
}

# Models for which it offers another one at the start, and Enter would take that; as asked, it does not ask.
_OFFERED: Mapping[str, str] = {
    "gpt-5.5": "gpt-6-sol",
    "gpt-5.6-luna": "gpt-6-luna",
    "gpt-5.6-sol": "gpt-6-sol",
    "gpt-5.6-terra": "gpt-6-sol",
}


class CodexAdapter(RuntimeAdapter):
    name = "codex"
    title = "OpenAI Codex"
    binary_name = "codex"
    install_hint = "npm install -g @openai/codex"
    oldest = "0.166.0"
    key_names = (*KEYS, "OPENAI_BASE_URL", "CODEX_HOME")
    states: ClassVar[Mapping[str, str]] = {
        "UserPromptSubmit": "working",
        "PermissionRequest": "waiting",
        "PostToolUse": "working",
        "Stop": "idle",
    }
    submit_event = "UserPromptSubmit"
    conversation_files = ("codex/sessions",)
    transports = ("http",)
    unsure_events = ("PermissionRequest",)
    own_words = INPUT_LINE
    screen = ScreenPatterns(
        ready=r"^› *$",
        draft=r"^› (?!\d\. )\S",
        dialog=r"^› 1\. |[Pp]ress enter to confirm|enter to (?:submit|continue)",
        working=r"esc to interrupt",
        failed=r"^■ (?!Conversation interrupted).*",
        interrupted=r"^■ Conversation interrupted",
    )

    def login_problem(self, env: Mapping[str, str], model: str | None = None) -> str | None:
        if key_of(env) or (config_home(env) / "auth.json").exists():
            return None
        return "codex is not logged in; run codex login, or set CODEX_API_KEY"

    def permission_words(self, permissions: Permissions) -> str:
        return f"`{' '.join(_approval(permissions))}`"

    def headless_permission_words(self, permissions: Permissions) -> str:
        return f"`-s {SANDBOX[permissions]}`"

    def interactive(self, order: InteractiveOrder) -> Launch:
        argv = [*(self.find_command(order.env, order.command) or order.command or (self.binary_name,))]
        if order.resume and order.conversation_id:
            argv.append("resume")
        # without --no-daemon it leaves servers behind that outlive the builder
        argv += ["--no-daemon", "--dangerously-bypass-hook-trust", *_approval(order.permissions)]
        for setting in self._interactive_settings(order):
            argv += ["-c", setting]
        if order.model:
            argv += ["-m", order.model]
        argv += order.extra_args
        if order.resume and order.conversation_id:
            argv.append(order.conversation_id)
        if order.prompt is not None:
            argv += ["--", argument_for(order, self.own_words)]
        env = {**order.env, **(order.mcp_server.environment() if order.mcp_server else {})}
        role = order.role_text or ""
        if key_of(order.env):
            home = order.run_directory / "codex"
            env["CODEX_HOME"] = str(home)
            file = LaunchFile(home / "config.toml", config_with_role(role))
        else:
            file = LaunchFile(_role_file(order), role)
        return Launch(tuple(argv), order.cwd, env, (file,))

    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        from agent_farm.runtimes.codex_headless import run_codex

        make_directory(order.scratch / "tmp")
        # codex runs no sandboxed command while its home lies under TMPDIR
        env = {"TMPDIR": str(order.scratch / "tmp")}
        if key_of(order.env):
            home = order.home / "codex"
            make_directory(home)
            replace_file(home / "config.toml", config_with_role(order.system_prompt))
            env["CODEX_HOME"] = str(home)
        settings = [*key_settings(order.env), *FEATURES_OFF, *tool_environment()]
        is_bound = order.permissions == "edit" and order.bounds != NONE
        settings += _profile(order) if is_bound else ["sandbox_workspace_write.exclude_slash_tmp=true"]
        settings += [] if is_bound else _may_commit(order.permissions, order.cwd)
        if order.mcp_server:
            settings.append(f"mcp_servers={inline_toml(server_form((order.mcp_server,), required=True))}")
        if order.system_prompt and not key_of(order.env):
            replace_file(order.scratch / "role.md", order.system_prompt)
            settings.append(role_argument(order.system_prompt, order.scratch / "role.md"))
        # a private home holds nothing of the user's, but the role
        lock = [] if key_of(order.env) else ["--ignore-user-config"]
        if not is_bound:
            lock += ["-s", SANDBOX[order.permissions]]
        return await run_codex(order, env, lock, settings)

    def build_config_file(
        self, mcp_servers: Mapping[str, McpServer | Mapping[str, object]], tmp_dir: Path
    ) -> Path:
        import tomli_w

        path = tmp_dir / "config.toml"
        form = server_form(as_servers(mcp_servers), required=True)
        replace_file(path, tomli_w.dumps({"mcp_servers": form}))
        return path

    def _interactive_settings(self, order: InteractiveOrder) -> list[str]:
        ours = (order.mcp_server,) if order.mcp_server else ()
        places = list(directories_between(order.worktree, order.cwd))
        # hooks of a linked worktree are those of the main checkout
        if main := main_checkout(order.worktree):
            places += [main / place.relative_to(order.worktree) for place in places]
        directories = [place / ".codex" for place in places]
        if not key_of(order.env):
            directories.append(config_home(order.env))
        settings = [*key_settings(order.env), *FEATURES_OFF, *tool_environment()]
        off = foreign_settings_off(directories, keep=[server.name for server in ours])
        # whole tables: in a dotted key codex takes quotes for a part of the name
        settings.append(f"mcp_servers={inline_toml({**off.servers, **server_form(ours)})}")
        command = {"type": "command", "command": shell_command(order), "timeout": HOOK_SECONDS}
        events = hook_events(self.states, ("SessionStart", "SessionEnd"))
        hooks = {event: [{"hooks": [command]}] for event in events}
        settings.append(f"hooks={inline_toml({**hooks, 'state': off.hook_states})}")
        trusted = {str(place): {"trust_level": "trusted"} for place in (order.worktree, order.cwd)}
        # notify is a program of the user's
        settings.append(f"notice.model_migrations={inline_toml(_OFFERED)}")
        settings += [f"projects={inline_toml(trusted)}", "check_for_update_on_startup=false", "notify=[]"]
        settings += _may_commit(order.permissions, order.worktree)
        if order.role_text and not key_of(order.env):
            settings.append(role_argument(order.role_text, _role_file(order)))
        return settings


def _profile(order: HeadlessOrder) -> list[str]:
    """`-s workspace-write` with bounds. It takes /tmp for its own unless told otherwise."""
    bounds = order.bounds
    files = {":slash_tmp": "read", **{str(place): "write" for place in git_directories(order.cwd)}}
    files |= {str(place): "read" for place in bounds.keeps} | {str(place): "deny" for place in bounds.hides}
    profile = {"extends": ":workspace", "filesystem": files}
    return ['default_permissions="farm"', f"permissions={inline_toml({'farm': profile})}"]


def key_of(env: Mapping[str, str]) -> str | None:
    """The variable that holds a key; with one, a private configuration home is safe."""
    return next((name for name in KEYS if env.get(name)), None)


def config_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME", os.sep)) / ".codex")


def key_settings(env: Mapping[str, str]) -> list[str]:
    """A provider of its own: a key in the environment does not log the terminal interface in."""
    key = key_of(env)
    if key is None:
        return []
    provider = {
        "name": "OpenAI",
        "base_url": env.get("OPENAI_BASE_URL") or DEFAULT_URL,
        "env_key": key,
        "wire_api": "responses",
        "request_max_retries": 3,
        "stream_max_retries": 3,
    }
    return ["model_provider=farm_key", f"model_providers.farm_key={inline_toml(provider)}"]


def server_form(servers: tuple[McpServer, ...], *, required: bool = False) -> dict[str, dict[str, object]]:
    return {server.name: _server(server, required) for server in servers}


def tool_environment() -> list[str]:
    """Commands of the model need neither the key nor the token."""
    return [f"shell_environment_policy.exclude={inline_toml([*KEYS, MCP_TOKEN])}"]


def _server(server: McpServer, required: bool) -> dict[str, object]:
    form: dict[str, object] = {
        "url": server.url,
        "default_tools_approval_mode": "approve",
        "omit_tools_from": ["deferred"],
        "tool_timeout_sec": TOOL_SECONDS,
    }
    if server.token:
        form["bearer_token_env_var"] = MCP_TOKEN
    return {**form, **({"required": True} if required else {})}


def _may_commit(permissions: Permissions, checkout: Path) -> list[str]:
    """Both git directories by name: each is read-only to it unless it is a writable root itself."""
    if permissions != "edit":
        return []
    writable = [str(place) for place in git_directories(checkout)]
    return [f"sandbox_workspace_write.writable_roots={inline_toml(writable)}"]


def _role_file(order: InteractiveOrder) -> Path:
    return order.run_directory / "codex-role.md"


def _approval(permissions: Permissions) -> tuple[str, ...]:
    if permissions == "all":
        return ("--dangerously-bypass-approvals-and-sandbox",)
    return ("-s", SANDBOX[permissions], "-a", "on-request")

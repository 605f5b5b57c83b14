"""Claude Code: `claude` in a pane, `claude_agent_sdk.query()` headless."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from agent_farm.runtimes.claude_headless import bounds_rules, worker_order
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
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.mcp_config import claude_form
from agent_farm.runtimes.parsers import parser_in
from agent_farm.runtimes.worktree_facts import main_checkout

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
# these use a cloud's login instead of its own
CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")


def has_key(env: Environment) -> bool:
    wants_cloud = any(env.get(name, "").lower() in ("1", "true", "yes", "on") for name in CLOUDS)
    return wants_cloud or any(env.get(name) for name in KEYS)


def _login(env: Environment, model: str | None) -> str | None:
    home = Path(env.get("HOME", os.sep))
    config_home = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    # on macOS the login is in the keychain; all that can be seen is that somebody logged in once
    in_keychain = sys.platform == "darwin" and (home / ".claude.json").exists()
    if has_key(env) or (config_home / ".credentials.json").exists() or in_keychain:
        return None
    return (
        "claude is not logged in; run claude once and log in, or set ANTHROPIC_API_KEY, or for a cloud "
        "CLAUDE_CODE_USE_BEDROCK or CLAUDE_CODE_USE_VERTEX"
    )


def bundled_claude() -> Path | None:
    """The `claude` inside claude_agent_sdk, found without importing that, which would take a second."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or not spec.origin:
        return None
    binary = Path(spec.origin).parent / "_bundled" / "claude"
    return binary if os.access(binary, os.X_OK) else None


def _environment(start: Start) -> dict[str, str]:
    env = {
        "CLAUDE_CODE_SANDBOXED": "1",  # trusts the folder, which the farm made
        "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",  # --setting-sources "" leaves out CLAUDE.md
        "DISABLE_AUTOUPDATER": "1",
    }
    if start.permissions == "all" and os.geteuid() == 0:
        env["IS_SANDBOX"] = "1"  # otherwise claude refuses bypassPermissions to root
    return env


def _flags(start: Start) -> list[str]:
    """The lock: our MCP file only, no user or project settings, but the project's CLAUDE.md.

    Unlocked, it uses the user's settings as well, but never the project's; without the user's settings it
    would not find the user's servers.
    """
    flags = [] if "mcp" in start.unlocked else ["--strict-mcp-config"]
    flags += ["--mcp-config", str(_file(start, "mcp.json"))]
    sources = "user" if start.unlocked else ""
    flags += ["--setting-sources", sources, "--settings", str(_file(start, "settings.json"))]
    for directory in dict.fromkeys((start.top, start.cwd)):
        flags += ["--add-dir", str(directory)]
    if start.server:
        flags += ["--allowedTools", f"mcp__{start.server.name}"]
    if start.role:
        flags += [
            "--append-system-prompt-file",
            str(_file(start, "role.md")),
            "--system-prompt-snapshot",
            "off",
        ]
    return flags


def _file(start: Start, name: str) -> Path:
    return start.place / (f"claude-{name}" if start.in_pane else name)


def _files(start: Start) -> dict[Path, str]:
    settings = _pane_settings(start) if start.in_pane else {"permissions": bounds_rules(start)}
    files = {
        _file(start, "mcp.json"): json.dumps(claude_form(start.servers)),
        _file(start, "settings.json"): json.dumps(settings),
    }
    if start.role:  # as a file: arguments are limited in length, and visible to everybody
        files[_file(start, "role.md")] = start.role
    if has_key(start.env) and not start.unlocked:
        files[start.home / ".claude.json"] = json.dumps(_seeded_config(start))
    return files


def _seeded_config(start: Start) -> dict[str, object]:
    """A `.claude.json` with which it asks about no theme, onboarding or key.

    Files outside the project that its CLAUDE.md imports are left out without asking.
    """
    answered = {
        "hasClaudeMdExternalIncludesApproved": False,
        "hasClaudeMdExternalIncludesWarningShown": True,
    }
    main = main_checkout(start.top)  # it stores its answers under the main checkout
    projects = (start.top, start.cwd, *([main] if main else [])) if start.in_pane else ()
    return {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {
            "approved": [key[-20:] for key in [start.env.get("ANTHROPIC_API_KEY")] if key],
            "rejected": [],
        },
        "projects": {str(place): answered for place in projects},
    }


def _pane_settings(start: Start) -> dict[str, object]:
    hooks: dict[str, list[object]] = {event: [_hook(start.report)] for event in HOOKS.events}
    if start.server and start.prompt is not None and start.await_tools:
        # it sends its first prompt before it has asked for the server's tools, unless a hook holds it
        hooks["SessionStart"].append(_hook(start.await_tools))
    return {"hooks": hooks, "skipDangerousModePermissionPrompt": True}


def _hook(argv: Sequence[str]) -> dict[str, object]:
    """Given as an argv, the command is executed directly, so that no shell reads our paths."""
    entry = {"type": "command", "command": argv[0], "args": list(argv[1:]), "timeout": HOOK_SECONDS}
    return {"hooks": [entry]}


HOOKS = Hooks(
    # Auto-compaction, too, starts a session (SessionStart:compact); not listed, it changes nothing.
    states={
        "UserPromptSubmit": "working",
        "PermissionRequest": "waiting",
        "PostToolUse": "working",
        "PostToolUseFailure": "working",
        "Stop": "idle",
        "StopFailure": "waiting",
    },
    ready_states={
        "SessionStart:startup": "idle",
        "SessionStart:resume": "idle",
        "SessionStart:clear": "idle",
    },
    submitted="UserPromptSubmit",
    unsure=("PermissionRequest",),
    # the last message tells more about an error than the error itself, a word such as `unknown`
    reason=("last_assistant_message", "message", "error", "tool_name"),
    writers={
        "Write": "file_path",
        "Edit": "file_path",
        "MultiEdit": "file_path",
        "NotebookEdit": "notebook_path",
    },
)

CLAUDE_CODE = Cli(
    name="claude-code",
    title="Claude Code",
    provider="anthropic",
    binary="claude",
    install="npm install -g @anthropic-ai/claude-code",
    oldest="2.1.326",
    tried="2.1.326",
    keys=KEYS,
    variables=(*CLOUDS, "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR"),
    unlocks=("settings", "mcp"),
    login=_login,
    has_key=has_key,
    bundled=lambda: (str(found),) if (found := bundled_claude()) else None,
    home=Home("CLAUDE_CONFIG_DIR", conversations=("projects",), only_with_key=True),
    own_home=".claude",
    talk=("projects/{cwd}/{id}.jsonl", "projects/{cwd}/{id}/subagents/*"),
    pane="{flags} {permissions} {model} {extra} {conversation} {prompt}",
    worker=worker_order,
    words=Words(begin=("--session-id", "{}"), resume=("--resume", "{}"), prompt=("--", "{}")),
    permissions={
        "ask": ("--permission-mode", "manual"),
        "edit": ("--permission-mode", "acceptEdits"),
        "all": ("--permission-mode", "bypassPermissions"),
    },
    ask=Ask(
        # dontAsk refuses every read outside the directory and --add-dir, and through links that lead out
        command=(
            'claude -p --strict-mcp-config --setting-sources "" --tools Read,Grep,Glob'
            " --no-session-persistence --permission-mode dontAsk --output-format stream-json"
            " --verbose --add-dir={directories}"
        ),
        chat=(
            'claude --strict-mcp-config --setting-sources "" --permission-mode default'
            " --add-dir={directories}"
        ),
        # each directory is new and made by af: otherwise it would ask every time whether to trust it
        env={"CLAUDE_CODE_SANDBOXED": "1"},
        files={".mcp.json": "{}"},
        instructions=("CLAUDE.md", "CLAUDE.local.md"),
        output="claude",
        variables=(
            *("ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*"),
            *("CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_MAX_RETRIES", "API_TIMEOUT_MS", "VERTEX_REGION_*", "AWS_*"),
            *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION"),
        ),
    ),
    flags=_flags,
    files=_files,
    environment=_environment,
    events=parser_in("claude_events", "ClaudeEvents"),
    hooks=HOOKS,
    screen=Screen(
        ready=r"^\s*❯\s*$",
        draft=r"^\s*❯\s+(?!\d\. )\S",
        dialog=r"Esc to cancel|Enter to confirm|Do you want to",
        working=r"esc to interrupt|^ *[·✢✳✶✻✽*] \S.*…",
        shows_work=True,
    ),
    limited=r"hit your (?!monthly spend)(?:[\w-]+ ){0,3}limit\b(?:.*?\bresets (?P<until>[^·•.]+))?",
)


class ClaudeCodeAdapter(CliAdapter):
    cli = CLAUDE_CODE

"""Gemini CLI, started with a configuration home of its own, for which it needs a key."""

from __future__ import annotations

import glob
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tomli_w

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
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.foreign import load_json, settings_between, table
from agent_farm.runtimes.mcp_config import McpServer, claude_form, locked_name
from agent_farm.runtimes.parsers import parser_in
from agent_farm.runtimes.skills import skill_commands, skill_paths

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


def _auth_type(env: Environment) -> str | None:
    if env.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in ("true", "1"):
        return "vertex-ai"
    return "gemini-api-key" if any(env.get(name) for name in KEYS) else None


def _login(env: Environment, model: str | None) -> str | None:
    if _auth_type(env):
        return None
    return (
        "gemini has no key: set GEMINI_API_KEY, or GOOGLE_GENAI_USE_VERTEXAI and what it needs "
        "(Google has taken no consumer login from it since June 2026; the login of a company cannot be "
        "used: it lives in a configuration home that cannot be locked)"
    )


def _environment(start: Start) -> dict[str, str]:
    ours = {
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",  # the child that it would restart as survives a hang-up
    }
    env = start.env
    if not env.get("GEMINI_API_KEY") and _auth_type(env) == "gemini-api-key":
        # this is the only name under which it takes a key; with Vertex, the other name keeps its own meaning
        ours["GEMINI_API_KEY"] = env["GOOGLE_API_KEY"]
    return ours


def _config(servers: Sequence[McpServer]) -> dict[str, object]:
    return claude_form(servers, trust=True)


def _files(start: Start) -> dict[Path, str]:
    settings: dict[str, object] = {
        "security": {"auth": {"selectedType": _auth_type(start.env)}},
        "advanced": {"ignoreLocalEnv": True, "excludedEnvVars": [MCP_TOKEN]},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "ui": {"hideTips": True, "hideBanner": True},
        "ide": {"hasSeenNudge": True, "enabled": False},
        # other runtimes read AGENTS.md in the same tree
        "context": {"fileName": ["GEMINI.md", "AGENTS.md"]},
        "hooksConfig": {"enabled": True, "notifications": False, "disabled": _project_hooks(start)},
        **_config(start.servers),
    }
    directory = start.home / ".gemini"
    files = {directory / "GEMINI.md": start.role}
    if start.in_pane:
        settings["hooks"] = {event: [{"hooks": [_hook(start)]}] for event in HOOKS.events}
    else:
        rules = [*(_skill_rules(start) if start.permissions == "edit" else ()), *_bounds_rules(start)]
        files[directory / "policies" / "farm.toml"] = tomli_w.dumps({"rule": rules} if rules else {})
    return {directory / "settings.json": json.dumps(settings), **files}


def _set_conversation_apart(start: Start) -> None:
    """Give its files names that gemini does not choose.

    Each start opens a file that is named after the minute and the conversation, and deletes it if it is ended
    before it has loaded the conversation: within the minute, that would be the conversation's own.
    """
    id = (start.conversation_id or "")[:8]
    for file in start.home.glob(f".gemini/tmp/*/chats/session-*T*-{glob.escape(id)}.jsonl"):
        file.rename(file.with_name(f"session-{time.time_ns()}-{id}.jsonl"))


def _hook(start: Start) -> dict[str, object]:
    # shown while the hook runs, instead of the whole command
    words = {"name": "agent-farm", "type": "command", "command": start.report_line}
    return {**words, "timeout": HOOK_SECONDS * 1000}


def _project_hooks(start: Start) -> list[str]:
    """The names by which the project's hooks can be switched off: each one's name, or its command."""
    found: list[str] = []
    for file in settings_between(start.top, start.cwd, ".gemini/settings.json"):
        for groups in table(load_json(file), "hooks").values():
            for group in groups if isinstance(groups, list) else ():
                for hook in group.get("hooks") or () if isinstance(group, Mapping) else ():
                    if isinstance(hook, Mapping):
                        found += [str(hook[field]) for field in ("name", "command") if hook.get(field)]
    return list(dict.fromkeys(found))


def _flags(start: Start) -> list[str]:
    """If there is no server, the only one allowed has a name that no server has."""
    name = start.server.name if start.server else locked_name(McpServer("none", ""), start.run)
    flags = ["--allowed-mcp-server-names", name, "--extensions", "none"]
    if not start.in_pane and start.permissions == "edit":
        # one allowed script makes the shell tool available; the policy file says what may run
        for script in skill_paths(start.skills, start.cwd)[:1]:
            flags += ["--allowed-tools", f"run_shell_command({script})"]
    for place in start.bounds.reads:
        if place.is_dir():
            flags += ["--include-directories", str(place)]
    return flags


def _skill_rules(start: Start) -> Iterator[dict[str, object]]:
    """One rule for each way to start each script, because it refuses nested repetitions."""
    for command in skill_commands(start.skills, start.cwd):
        for given in ("", " [A-Za-z0-9_./= -]*"):
            pattern = f'{re.escape(command)}{given}"'
            rule = {"toolName": "run_shell_command", "commandRegex": pattern}
            yield {**rule, "decision": "allow", "priority": 900}


def _bounds_rules(start: Start) -> Iterator[dict[str, object]]:
    """Files that it may read it could also write: so it may only write below its directory."""
    bounds, cwd = start.bounds, re.escape(f"{start.cwd}/")
    if bounds == NONE or start.permissions == "all":
        return
    kept = [re.escape(os.path.relpath(place, start.cwd)) for place in bounds.keeps]
    outside = (r"[^\"]*(\.\.|//|/\./)", rf"/(?!{cwd[1:]})")
    for pattern in (*outside, *(rf"({cwd}|\./)?{name}[\"/]" for name in kept)):
        rule = {"toolName": ["write_file", "replace"], "argsPattern": f'"file_path":"{pattern}'}
        yield {**rule, "decision": "deny", "priority": 950}


HOOKS = Hooks(
    states={
        "BeforeAgent": "working",
        "Notification:ToolPermission": "waiting",
        "AfterTool": "working",
        "AfterAgent": "idle",
        "AfterAgent:[no response text]": "waiting",  # an API error, or Esc: the screen tells which
    },
    ready_states={"SessionStart": "idle"},
    submitted="BeforeAgent",
    unsure=("Notification", "AfterAgent"),
    wants_reply=True,
    kind=("notification_type", "prompt_response"),
    reason=("message", "prompt_response"),
    asked_about="details",
    writers={"write_file": "file_path", "replace": "file_path"},
)

GEMINI = Cli(
    name="gemini",
    title="Gemini CLI",
    provider="gcp.gemini",
    binary="gemini",
    install="npm install -g @google/gemini-cli",
    oldest="0.53.0",
    tried="0.61.0",
    keys=KEYS,
    variables=(
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    login=_login,
    home=Home(
        "GEMINI_CLI_HOME",
        conversations=(".gemini/tmp", ".gemini/history", ".gemini/projects.json"),
    ),
    pane="{permissions} {flags} {model} {conversation} {extra} {prompt}",
    headless="{permissions} -o stream-json {flags} {model} {conversation} {extra}",
    words=Words(begin=("--session-id", "{}"), resume=("--resume", "{}"), prompt=("--prompt-interactive={}",)),
    permissions={
        "ask": ("--approval-mode", "default"),
        "edit": ("--approval-mode", "auto_edit"),
        "all": ("--approval-mode", "yolo"),
    },
    ask=Ask(
        command=(
            "gemini --approval-mode default -o stream-json"
            " --allowed-mcp-server-names lctx-none -e none --include-directories={directories}"
        ),
        chat=(
            "gemini --approval-mode default"
            " --allowed-mcp-server-names lctx-none -e none --include-directories={directories}"
        ),
        # otherwise it starts a second process, which survives a signal to the first
        env={"GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        # in a trusted directory these settings override the user's, whose hooks would run
        files={".gemini/settings.json": json.dumps({"hooksConfig": {"enabled": False}})},
        instructions=("GEMINI.md", "AGENTS.md"),
        output="gemini",
        variables=("GEMINI_*", "GOOGLE_*"),
    ),
    config=_config,
    config_file="settings.json",
    server_name=lambda server, start: locked_name(
        server, start.run
    ),  # a project's server with the same name would win
    flags=_flags,
    files=_files,
    environment=_environment,
    before_resume=_set_conversation_apart,
    events=parser_in("gemini_events", "GeminiEvents"),
    hooks=HOOKS,
    screen=Screen(
        ready=r"^ *> +Type your message",
        draft=r"^ *> +(?!Type your message)\S",
        dialog=r"● 1\. ",
        working=r"esc to cancel|Executing Hook",
        failed=r"^ *✕ .*",
        interrupted=r"^ *ℹ Request cancelled",
    ),
    limited=(
        r"usage limit reached for(?:.*?access resets at (?P<until>[^.]+))?"
        r"|exhausted your (?:daily quota|capacity)(?:.*?will reset after (?P<after>\w+))?"
    ),
    notices_dead_mcp=False,
    hides_git_identity=True,  # its commands run with GIT_CONFIG_GLOBAL=/dev/null
)


class GeminiAdapter(CliAdapter):
    cli = GEMINI

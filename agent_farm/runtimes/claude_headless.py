"""Claude Code headless: the order for the SDK's worker, and a session's bounds as Claude's rules."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from agent_farm.disk import replace_file
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.skills import skill_commands

# -E -P instead of -I, because the package may be installed for this user only
WORKER = (sys.executable, "-E", "-P", "-m", "agent_farm.runtimes.claude_worker")
_MESSAGE_LIMIT = 1 << 25  # by default, the SDK ends a session whose tool returns more than a megabyte
_MODES = {"ask": "dontAsk", "edit": "acceptEdits", "all": "bypassPermissions"}


def bounds_rules(start: Start) -> dict[str, list[str]]:
    """Rules that deny take precedence over those that allow."""
    bounds = start.bounds
    deny = [rule for place in bounds.hides for rule in _rules("Read", place)]
    deny += [rule for place in (*bounds.keeps, *bounds.hides) for rule in _rules("Edit", place)]
    return {"allow": [f"Read({_pattern(place)}/**)" for place in bounds.reads], "deny": deny}


def _rules(tool: str, place: Path) -> tuple[str, str]:
    """Rules for a file and for a directory, since the place may become either."""
    return f"{tool}({_pattern(place)})", f"{tool}({_pattern(place)}/**)"


def _pattern(place: Path) -> str:
    """An absolute path starts with two slashes; the rest is a pattern as in .gitignore."""
    return "/" + re.sub(r"([*?\[\]\\!#])", r"\\\1", str(place))


def worker_order(start: Start) -> tuple[tuple[str, ...], str]:
    """The worker that runs the SDK in a process of its own, and its standard input."""
    allowed = [f"mcp__{start.server.name}"] if start.server else []
    if start.permissions == "edit":  # these run without asking
        allowed += [f"Bash({command}:*)" for command in skill_commands(start.skills, start.cwd)]
    role = {"append-system-prompt-file": str(start.place / "role.md"), "system-prompt-snapshot": "off"}
    options = {
        "cli_path": _program(start),
        "cwd": str(start.cwd),
        "env": {},
        "add_dirs": [] if _is_told_already(start) else [str(start.cwd)],
        "model": start.model,
        "max_turns": start.max_turns,
        "permission_mode": _MODES[start.permissions],
        "allowed_tools": allowed,
        "mcp_servers": str(start.place / "mcp.json"),
        "settings": str(start.place / "settings.json"),
        "strict_mcp_config": True,
        "setting_sources": [],
        "system_prompt": {"type": "preset", "preset": "claude_code"},
        "resume": start.conversation_id if start.resume else None,
        "session_id": None if start.resume else start.conversation_id,
        "extra_args": role if start.role else {},
        "verbatim_prompts": True,
        "max_buffer_size": _MESSAGE_LIMIT,
    }
    return WORKER, json.dumps({"prompt": start.prompt, "options": options})


def _program(start: Start) -> str:
    """The single path that the SDK requires; for a command of several words, a script that runs them."""
    command = start.command or ()
    if len(command) == 1 and not start.extra_args:
        return command[0]
    script = start.place / "claude"
    words = f'{shlex.join(command)} "$@" {shlex.join(start.extra_args)}'
    replace_file(script, f"#!/bin/sh\nexec {words}\n", mode=0o700)
    return str(script)


def _is_told_already(start: Start) -> bool:
    """Whether the system prompt is the directory's own CLAUDE.md, which must not be given twice."""
    if start.bounds.own == start.cwd:
        return True
    try:
        own = (start.cwd / "CLAUDE.md").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return True
    return own in start.role

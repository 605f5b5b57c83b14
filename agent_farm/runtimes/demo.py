"""`demo`: a small scripted agent in a process of its own, to try and test everything without an account."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from agent_farm.runtimes.cli import Cli, Hooks, Screen, Start, Words
from agent_farm.runtimes.engine import CliAdapter
from agent_farm.runtimes.mcp_config import claude_form
from agent_farm.runtimes.parsers import parser_in
from agent_farm.runtimes.plain_text import OwnWords

AGENT = Path(__file__).parent / "demo_agent" / "__main__.py"


def _files(start: Start) -> dict[Path, str]:
    files = {_file(start, "mcp.json"): json.dumps(claude_form(start.servers))}
    if start.role:
        files[_file(start, "role.md")] = start.role
    if start.in_pane and start.prompt is not None and start.prompt_file is None:
        files[_file(start, "prompt.txt")] = start.prompt
    return files


def _file(start: Start, name: str) -> Path:
    return start.place / f"demo-{name}"


def _flags(start: Start) -> list[str]:
    flags = ["--home", str(start.home), "--mcp-config", str(_file(start, "mcp.json"))]
    if start.role:
        flags += ["--role-file", str(_file(start, "role.md"))]
    if start.in_pane:
        flags += ["--hook", json.dumps(start.report)]
    if start.in_pane and start.prompt is not None:
        flags += ["--prompt-file", str(start.prompt_file or _file(start, "prompt.txt"))]
    for word, places in (("--read", start.bounds.reads), ("--keep", start.bounds.keeps)):
        flags += [part for place in places for part in (word, str(place))]
    return flags


DEMO = Cli(
    name="demo",
    title="Demo agent",
    binary="demo",
    install="it is part of agent-farm",
    bundled=lambda: (sys.executable, "-I", "-S", str(AGENT)),
    pane="interactive {flags} {permissions} {conversation} {model} {extra}",
    headless="headless {flags} {permissions} {conversation} {model} {extra}",
    words=Words(begin=("--conversation", "{}")),
    permissions={
        "ask": ("--permissions", "ask"),
        "edit": ("--permissions", "edit"),
        "all": ("--permissions", "all"),
    },
    talk=("{id}.json",),
    flags=_flags,
    files=_files,
    events=parser_in("demo_events", "DemoEvents"),
    transports=("http",),
    hooks=Hooks(
        states={
            "UserPromptSubmit": "working",
            "PermissionRequest": "waiting",
            "PostToolUse": "working",
            "Stop": "idle",
            "StopFailure": "waiting",
        },
        ready_states={
            "SessionStart:startup": "idle",
            "SessionStart:resume": "idle",
        },
        submitted="UserPromptSubmit",
        unsure=("PermissionRequest",),
        writers={"edit": "path", "write": "path"},
    ),
    own_words=OwnWords(whole="/exit"),
    screen=Screen(
        ready=r"^demo>\s*$",
        draft=r"^demo> \S",
        dialog=r"^demo\? 1 yes",
        working=r"^● [^\n]*\n+demo>[^\n]*\s*\Z",
    ),
    limited=r"usage limit reached(?:, resets (?P<until>.+))?",
    interrupt="C-c",
    tells_version=False,
    check_prompt='[[mcp:farm_check {"word": "demo"}]]',
)


class DemoAdapter(CliAdapter):
    cli = DEMO

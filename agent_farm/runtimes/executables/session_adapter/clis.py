"""The command lines of the three CLIs, headless and with the prompt on standard input."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cli:
    """`begin` and `resume` give the arguments for a conversation id; `learn` finds it in the output."""

    binary: str
    install_hint: str
    begin: Callable[[str], list[str]]
    resume: Callable[[str], list[str]]
    learn: Callable[[dict[str, Any]], str | None] = lambda event: None

    def find(self) -> str | None:
        return shutil.which(self.binary)


def learn_from(cli: Cli, line: bytes) -> str | None:
    """The conversation id that a line of the CLI's output tells, if it does."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return cli.learn(event) if isinstance(event, dict) else None


_CODEX = ["exec", "--json", "--skip-git-repo-check", "-s", "workspace-write"]
_COPILOT = ["--no-auto-update", "--no-color", "--output-format", "json", "--no-ask-user", "--allow-all-tools"]


def _claude() -> list[str]:
    """Locked to the farm's MCP server where there is one, else to the servers of the project."""
    words = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
    config = os.environ.get("AF_MCP_CONFIG") or (".mcp.json" if Path(".mcp.json").is_file() else "")
    return [*words, "--strict-mcp-config", *(["--mcp-config", config] if config else [])]


CLIS = {
    "codex-cli": Cli(
        "codex",
        "npm install -g @openai/codex",
        begin=lambda identity: [*_CODEX, "-"],
        resume=lambda identity: [*_CODEX, "resume", identity, "-"],
        learn=lambda event: event.get("thread_id") if event.get("type") == "thread.started" else None,
    ),
    "github-copilot": Cli(
        "copilot",
        "npm install -g @github/copilot",
        begin=lambda identity: [*_COPILOT, f"--session-id={identity}"],
        resume=lambda identity: [*_COPILOT, f"--resume={identity}"],
    ),
    "claude-mcp": Cli(
        "claude",
        "npm install -g @anthropic-ai/claude-code",
        begin=lambda identity: [*_claude(), "--session-id", identity],
        resume=lambda identity: [*_claude(), "--resume", identity],
    ),
}

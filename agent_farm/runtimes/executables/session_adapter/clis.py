"""The command lines of the three CLIs, headless and with the prompt on standard input."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent_farm.runtimes.executables.session_adapter.servers import claude_words, codex_words, copilot_words


@dataclass(frozen=True)
class Cli:
    """`begin` and `resume` give the arguments for a conversation id; `learn` finds it in the output."""

    binary: str
    install_hint: str
    begin: Callable[[str], list[str]]
    resume: Callable[[str], list[str]]
    learn: Callable[[dict[str, Any]], str | None] = lambda event: None

    def find(self, path: str | None = None) -> str | None:
        """The first on `path`, else on this process's PATH."""
        found = shutil.which(self.binary, path=path)
        return os.path.abspath(found) if found else None

    def problem(self, path: str | None = None) -> str | None:
        """None, or what to install."""
        return None if self.find(path) else f"{self.binary} is not on PATH; {self.install_hint}"


def learn_from(cli: Cli, line: bytes) -> str | None:
    """The conversation id that a line of the CLI's output tells, if it does."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    told = cli.learn(event) if isinstance(event, dict) else None
    return told if isinstance(told, str) else None


def _codex() -> list[str]:
    return ["exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", *codex_words()]


def _copilot() -> list[str]:
    words = ["--no-auto-update", "--no-color", "--output-format", "json"]
    return [*words, "--no-ask-user", "--allow-all-tools", *copilot_words()]


def _claude() -> list[str]:
    words = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
    return [*words, *claude_words()]


CLIS = {
    "codex-cli": Cli(
        "codex",
        "npm install -g @openai/codex",
        begin=lambda identity: [*_codex(), "-"],
        resume=lambda identity: [*_codex(), "resume", identity, "-"],
        learn=lambda event: event.get("thread_id") if event.get("type") == "thread.started" else None,
    ),
    "github-copilot": Cli(
        "copilot",
        "npm install -g @github/copilot",
        begin=lambda identity: [*_copilot(), f"--session-id={identity}"],
        resume=lambda identity: [*_copilot(), f"--resume={identity}"],
    ),
    "claude-mcp": Cli(
        "claude",
        "npm install -g @anthropic-ai/claude-code",
        begin=lambda identity: [*_claude(), "--session-id", identity],
        resume=lambda identity: [*_claude(), "--resume", identity],
    ),
}

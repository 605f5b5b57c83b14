"""The real CLIs, each configured by its user for the fake API and for MCP servers that are decoys."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fake_api import FakeApi

INSTALLED = Path(__file__).parents[1] / "node_modules" / ".bin"


@dataclass(frozen=True)
class Cli:
    """`reading` asks the fake model to read a file; `bare` runs without a lock, to see the decoys work."""

    agent: str
    binary: str
    reading: str
    bare: str
    ready: str
    configure: Callable[[Path, FakeApi, Path], dict[str, str]]

    def read(self, path: Path) -> str:
        return self.reading.replace("PATH", str(path))


def require_cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{INSTALLED}{os.pathsep}{os.environ['PATH']}")
    if shutil.which(cli.binary) is None:
        pytest.skip(f"{cli.binary} is not installed: make test-runtimes")


def stdio_decoy(root: Path) -> Path:
    """An MCP server, or a hook, that says it was started, and ends: some wait minutes for a silent one."""
    path = root / "decoy"
    path.write_text(f"#!/bin/sh\necho '{{}}'\necho started >> '{root}/decoy-was-started'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _claude(home: Path, api: FakeApi, stdio: Path) -> dict[str, str]:
    key = "sk-ant-0123456789abcdefghij"
    _json(
        home / ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
            "mcpServers": {
                "decoy": {"type": "http", "url": f"{api.url}/decoy"},
                "local": {"type": "stdio", "command": str(stdio), "args": []},
            },
        },
    )
    return {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": key}


def _codex(home: Path, api: FakeApi, stdio: Path) -> dict[str, str]:
    _text(
        home / ".codex" / "config.toml",
        f'model = "gpt-5.2-codex"\nmodel_provider = "fake"\ncheck_for_update_on_startup = false\n'
        f'notify = ["{stdio}"]\n'
        f'[model_providers.fake]\nname = "fake"\nbase_url = "{api.url}/v1"\nenv_key = "FAKE_KEY"\n'
        f'wire_api = "responses"\n[mcp_servers.decoy]\nurl = "{api.url}/decoy"\n'
        f'[mcp_servers."my local"]\ncommand = "{stdio}"\n',
    )
    return {"FAKE_KEY": "k"}


def _gemini(home: Path, api: FakeApi, stdio: Path) -> dict[str, str]:
    _json(
        home / ".gemini" / "settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "hooks": {"BeforeAgent": [{"hooks": [{"type": "command", "command": str(stdio)}]}]},
            "mcpServers": {
                "decoy": {"httpUrl": f"{api.url}/decoy", "trust": True},
                "local": {"command": str(stdio), "trust": True},
            },
        },
    )
    extension = {"name": "x", "version": "1.0.0", "mcpServers": {"x": {"httpUrl": f"{api.url}/decoy/x"}}}
    _json(home / ".gemini" / "extensions" / "x" / "gemini-extension.json", extension)
    return {"GOOGLE_GEMINI_BASE_URL": api.url, "GEMINI_API_KEY": "k"}


def _opencode(home: Path, api: FakeApi, stdio: Path) -> dict[str, str]:
    model = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "fake",
        "options": {"baseURL": f"{api.url}/v1", "apiKey": "{env:FAKE_KEY}"},
        "models": {"fake-model": {"name": "fake"}},
    }
    _json(
        home / ".config" / "opencode" / "opencode.json",
        {
            "model": "fake/fake-model",
            "small_model": "fake/fake-model",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"fake": model},
            "mcp": {
                "decoy": {"type": "remote", "url": f"{api.url}/decoy", "enabled": True},
                "local": {"type": "local", "command": [str(stdio)], "enabled": True},
            },
        },
    )
    second = {"type": "remote", "url": f"{api.url}/decoy/home", "enabled": True}
    _text(home / ".opencode" / "opencode.jsonc", f'{{"mcp": {{"second": {json.dumps(second)},}}}} // mine')
    return {"FAKE_KEY": "k"}


CLIS = (
    Cli("claude-code", "claude", '[[call:Read {"file_path":"PATH"}]]', "claude -p", "❯", _claude),
    Cli(
        "codex",
        "codex",
        "[[shell:cat PATH]]",
        "codex exec --skip-git-repo-check -",
        "Ask Codex",
        _codex,
    ),
    Cli(
        "gemini",
        "gemini",
        '[[call:read_file {"file_path":"PATH"}]]',
        "gemini --skip-trust",
        "Type your message",
        _gemini,
    ),
    Cli(
        "opencode",
        "opencode",
        '[[call:read {"filePath":"PATH"}]]',
        "opencode run",
        "Ask anything",
        _opencode,
    ),
)


def _json(path: Path, document: object) -> None:
    _text(path, json.dumps(document))


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

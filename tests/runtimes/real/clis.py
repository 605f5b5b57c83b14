"""The real CLIs under test: how each reaches the fake API, and the decoys that it must not see."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from tests.fake_api import FakeApi

BIN = Path(__file__).parents[2] / "node_modules" / ".bin"
REQUIRED = os.environ.get("AF_REQUIRE_RUNTIMES") == "1"  # read before a test's own environment hides it


@dataclass(frozen=True)
class Cli:
    """`model` where the CLI has to be told one; `reads` is the file of the worktree that it has to read.

    `login` are the files of a user's home that log it in without `key`, one of `keys`, and `login_args`
    what leads it to the fake API then; there are none where a login of the user cannot be used.
    """

    name: str
    reads: str
    model: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    login: Mapping[str, object] = field(default_factory=dict)
    login_args: tuple[str, ...] = ()

    @property
    def adapter(self) -> RuntimeAdapter:
        return get_adapter(self.name)

    def environment(self, api: FakeApi) -> dict[str, str]:
        own = {name: value.format(url=api.url) for name, value in self.keys.items()}
        return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": os.environ["HOME"], **own}

    def account(self, api: FakeApi, home: Path, kind: str) -> dict[str, str]:
        """The environment of a `key`, or of a `login` that is then in the home."""
        env = self.environment(api)
        if kind == "login":
            if not self.login:
                pytest.skip("a login of the user cannot be used")
            del env[self.key]
            for name, document in self.login.items():
                _write(home / name, json.dumps(document))
        return env

    def arguments(self, api: FakeApi, kind: str) -> tuple[str, ...]:
        return tuple(word.format(url=api.url) for word in self.login_args) if kind == "login" else ()


CLIS = {
    cli.name: cli
    for cli in (
        Cli(
            "claude-code",
            "CLAUDE.md",
            keys={
                "ANTHROPIC_API_KEY": "sk-ant-fake-000000000000000000000000",
                "ANTHROPIC_BASE_URL": "{url}",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "1",
            },
            key="ANTHROPIC_API_KEY",
            login={
                ".claude/.credentials.json": {
                    "claudeAiOauth": {
                        "accessToken": "sk-ant-oat01-fake",
                        "refreshToken": "sk-ant-ort01-fake",
                        "expiresAt": 4102444800000,
                        "scopes": ["user:inference", "user:profile"],
                        "subscriptionType": "max",
                    }
                }
            },
        ),
        Cli(
            "codex",
            "AGENTS.md",
            keys={"CODEX_API_KEY": "sk-fake", "OPENAI_BASE_URL": "{url}/v1"},
            key="CODEX_API_KEY",
            login={".codex/auth.json": {"auth_mode": "apikey", "OPENAI_API_KEY": "sk-of-the-login"}},
            login_args=("-c", 'openai_base_url="{url}/v1"'),
        ),
        Cli(
            "gemini",
            "AGENTS.md",
            keys={"GEMINI_API_KEY": "fake-gemini-key", "GOOGLE_GEMINI_BASE_URL": "{url}"},
        ),
        Cli(
            "copilot",
            "AGENTS.md",
            keys={
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
                "COPILOT_PROVIDER_TYPE": "openai",
                "COPILOT_PROVIDER_API_KEY": "copilot-provider-key",
                "COPILOT_MODEL": "fake-model",
            },
        ),
        Cli(
            "opencode",
            "AGENTS.md",
            model="openai/gpt-5.2",
            keys={"OPENAI_API_KEY": "sk-fake", "OPENAI_BASE_URL": "{url}/v1"},
            key="OPENAI_API_KEY",
            login={".local/share/opencode/auth.json": {"openai": {"type": "api", "key": "sk-of-the-login"}}},
        ),
    )
}


RUNTIMES = tuple(CLIS)


def require_clis() -> None:
    require_installed(*(get_adapter(name).binary_name for name in RUNTIMES))


def require_installed(*programs: str) -> None:
    """Skip where they are not installed, unless they are required."""
    missing = [program for program in programs if not (BIN / program).exists()]
    if missing:
        message = f"not installed: {', '.join(missing)}; run sh tests/install_runtimes.sh"
        if REQUIRED:
            pytest.fail(message)
        pytest.skip(message)


def project_with_decoys(root: Path, api: FakeApi) -> dict[str, str]:
    """Files of a worktree: what its agents are to read, and servers and hooks that must not be used."""
    server = {"type": "http", "url": f"{api.url}/decoy/project/mcp"}

    def hook(source: str) -> dict[str, str]:
        return {"type": "command", "command": f"touch {root.parent}/hook-of-{source}"}

    claude = {
        "enableAllProjectMcpServers": True,
        "hooks": {"UserPromptSubmit": [{"hooks": [hook("claude")]}]},
    }
    gemini = {
        "mcpServers": {"decoy": {"httpUrl": server["url"]}},
        "hooks": {"BeforeAgent": [{"hooks": [hook("gemini")]}]},
    }
    codex = (
        f'[mcp_servers.decoy]\nurl = "{server["url"]}"\n'
        "[[hooks.UserPromptSubmit]]\n[[hooks.UserPromptSubmit.hooks]]\n"
        f'type = "command"\ncommand = "{hook("codex")["command"]}"\n'
    )
    opencode = {"mcp": {"decoy": {"type": "remote", "url": server["url"], "enabled": True, "oauth": False}}}
    copilot_hook = {"type": "command", "bash": hook("copilot")["command"]}
    return {
        "CLAUDE.md": "PROJECT-CLAUDE-MARK\n",
        "AGENTS.md": "PROJECT-AGENTS-MARK\n",
        ".mcp.json": json.dumps({"mcpServers": {"decoy": server}}),
        ".claude/settings.json": json.dumps(claude),
        ".gemini/settings.json": json.dumps(gemini),
        ".codex/config.toml": codex,
        ".github/mcp.json": json.dumps({"mcpServers": {"decoy-github": server}}),
        ".vscode/mcp.json": json.dumps({"servers": {"decoy-vscode": server}}),
        ".github/hooks/decoy.json": json.dumps(
            {"version": 1, "hooks": {"userPromptSubmitted": [copilot_hook], "sessionStart": [copilot_hook]}}
        ),
        "opencode.json": json.dumps(opencode),
    }


def write_user_decoys(home: Path, api: FakeApi) -> None:
    """The user's own settings, with servers, hooks and programs that must not be used either."""
    server = {"type": "http", "url": f"{api.url}/decoy/user/mcp", "tools": ["*"]}
    mcp = {"mcpServers": {"user-decoy": server}}
    claude = {"user-decoy": {"type": "http", "url": server["url"]}}
    opencode = {
        "mcp": {"user-decoy": {"type": "remote", "url": server["url"], "enabled": True, "oauth": False}}
    }

    def hook(source: str) -> str:
        return f"touch {home.parent}/hook-of-{source}"

    claude_hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook("user-claude")}]}]}
    codex = (
        f'notify = ["touch", "{home.parent}/hook-of-user-codex-notify"]\n'
        f'[mcp_servers.user-decoy]\nurl = "{server["url"]}"\n'
        "[[hooks.UserPromptSubmit]]\n[[hooks.UserPromptSubmit.hooks]]\n"
        f'type = "command"\ncommand = "{hook("user-codex")}"\n'
    )
    for name, content in {
        ".claude.json": json.dumps({"mcpServers": claude, "hasCompletedOnboarding": True}),
        ".claude/CLAUDE.md": "USER-CLAUDE-MARK",
        ".claude/settings.json": json.dumps({"hooks": claude_hooks}),
        ".codex/config.toml": codex,
        ".gemini/settings.json": json.dumps({"mcpServers": {"user-decoy": {"httpUrl": server["url"]}}}),
        ".copilot/mcp-config.json": json.dumps(mcp),
        ".config/opencode/opencode.json": json.dumps(opencode),
        ".opencode/opencode.json": json.dumps(opencode),
    }.items():
        _write(home / name, content)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)

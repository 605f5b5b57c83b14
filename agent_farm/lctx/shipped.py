"""The agents that need no entry in config.json, with flags that were tried on the real CLIs.

What each lock is for stands in docs/local-context.md. A value is glued to its flag, as in
`--add-dir={directories}`, so that no directory at all leaves no flag without a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT_AGENT = "claude-code"

SHIPPED: Mapping[str, Mapping[str, Any]] = {
    "claude-code": {
        # dontAsk refuses every read outside the directory and --add-dir; links out of a source included
        "ask": (
            'claude -p --strict-mcp-config --setting-sources "" --tools Read,Grep,Glob'
            " --permission-mode dontAsk --output-format stream-json --verbose --add-dir={directories}"
        ),
        "chat": (
            'claude --strict-mcp-config --setting-sources "" --permission-mode default'
            " --add-dir={directories}"
        ),
        # a new directory each time, made by this program: the trust dialog would be asked each time
        "env": {"CLAUDE_CODE_SANDBOXED": "1"},
        "stdin": "{prompt_file}",
        "output": "claude",
    },
    "codex": {
        "ask": (
            "codex exec --skip-git-repo-check --ephemeral --json -s read-only"
            " -c 'mcp_servers={codex_mcp_off}' -c features.apps=false -c features.plugins=false"
            " -c shell_environment_policy.inherit=core -"
        ),
        "chat": (
            "codex --no-daemon -s read-only -a on-request -c 'mcp_servers={codex_mcp_off}'"
            " -c features.apps=false -c features.plugins=false"
            """ -c 'projects={"{directory}"={trust_level="trusted"}}'"""
        ),
        "stdin": "{prompt_file}",
        "output": "codex",
    },
    "gemini": {
        "ask": (
            "gemini --skip-trust --approval-mode default -o stream-json"
            " --allowed-mcp-server-names lctx-none -e none --include-directories={directories}"
        ),
        "chat": (
            "gemini --skip-trust --approval-mode default"
            " --allowed-mcp-server-names lctx-none -e none --include-directories={directories}"
        ),
        # otherwise it starts a second process, and that one outlives a signal to the first
        "env": {"GEMINI_CLI_NO_RELAUNCH": "true"},
        "stdin": "{prompt_file}",
        "output": "gemini",
    },
    "opencode": {
        "ask": "opencode run --pure",
        "chat": "opencode --pure",
        "env": {
            "OPENCODE_CONFIG_CONTENT": "{opencode_config}",
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "TMPDIR": "{scratch}",  # each run leaves a library of several MB there
        },
        "stdin": "{prompt_file}",
    },
    "cursor-agent": {
        "ask": "cursor-agent -p --trust --mode=ask --output-format text -- {prompt}",
        "chat": "cursor-agent",
    },
}

INSTALL: Mapping[str, str] = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "gemini": "npm install -g @google/gemini-cli",
    "opencode": "npm install -g opencode-ai",
    "cursor-agent": "curl https://cursor.com/install -fsS | bash",
}

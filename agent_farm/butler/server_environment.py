"""What a server may see of the environment that it is started from."""

from __future__ import annotations

from collections.abc import Mapping

# What the server may see: it passes on to a session only what that session's butler declares.
NAMES = (
    *("PATH", "HOME", "USER", "SHELL", "LANG", "TZ", "TMPDIR", "TMUX_TMPDIR", "SSH_AUTH_SOCK"),
    *("GH_TOKEN", "GITHUB_TOKEN", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"),
)
PREFIXES = (
    *("LC_", "AF_", "XDG_", "OTEL_", "ANTHROPIC_", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
    *(
        "OPENAI_",
        "CODEX_",
        "GEMINI_",
        "GOOGLE_",
        "COPILOT_",
        "OPENCODE_",
        "OPENROUTER_",
        "GROQ_",
        "MISTRAL_",
        "XAI_",
    ),
)
PRIVATE = ("AF_MCP_TOKEN", "AF_SESSION", "AF_BUTLER", "AF_BUILDER_ID", "AF_RUN", "AF_RUN_DIR", "AF_WORKTREE")


def server_environment(environ: Mapping[str, str], declared: tuple[str, ...] = ()) -> dict[str, str]:
    """The server's own environment: what a session may ask for, and nothing of the terminal it came from."""
    return {
        name: value
        for name, value in environ.items()
        if (name in NAMES or name in declared or name.startswith(PREFIXES)) and name not in PRIVATE
    }

"""The adapter executables that af ships: codex-cli, github-copilot and claude-mcp."""

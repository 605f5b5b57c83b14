"""agent-farm: builders in git worktrees and tmux sessions, each with an AI coding CLI at work."""

__version__ = "0.1.0"

"""Builders and their worktrees: what `af` does with them, a use case per file."""

"""Shared by our programs in a pane: an input line on a plain terminal, and hooks. Standard library only."""

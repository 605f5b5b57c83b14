"""Moved to agent_farm/descendants.py."""

from __future__ import annotations

from agent_farm.descendants import end_children, live_children

__all__ = ["end_children", "live_children"]

"""Recorded screens, and what the rules of an adapter make of one."""

from __future__ import annotations

from pathlib import Path

from agent_farm.farm.stale_status import label_screen
from agent_farm.runtimes.cli import Screen

SCREENS = Path(__file__).with_name("recorded")


def label_of(captured: str, patterns: Screen) -> str:
    return label_screen(captured, patterns)[0]

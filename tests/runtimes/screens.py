"""Recorded screens, and what the rules of an adapter make of one."""

from __future__ import annotations

import re
from pathlib import Path

from agent_farm.runtimes.base import ScreenPatterns
from agent_farm.tmux.screen import ScreenRules, plain, read_screen

SCREENS = Path(__file__).with_name("recorded")


def label_of(captured: str, patterns: ScreenPatterns) -> str:
    """dialog, draft, working, ready or unknown; a turn that runs shows an input line, too."""
    reading = read_screen(captured, ScreenRules(patterns.ready, patterns.draft, patterns.dialog))
    if reading.dialog is not None:
        return "dialog"
    if reading.draft is not None:
        return "draft"
    if patterns.working and re.search(patterns.working, plain(captured), re.MULTILINE):
        return "working"
    return "ready" if reading.ready else "unknown"

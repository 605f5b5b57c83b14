"""What a conversation had cost before this run, for CLIs that only report its total."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from agent_farm.runtimes.base import HeadlessOrder


def spent_since(
    order: HeadlessOrder, conversation: str | None, totals: dict[str, float]
) -> dict[str, float] | None:
    """This run's part of `totals`; None when the conversation is resumed and its total before is unknown."""
    if conversation is None:
        return totals
    before = load_totals(order.home, conversation) if order.resume else {}
    save_totals(order.home, conversation, totals)
    if before is None:
        return None
    return {name: value - before.get(name, 0.0) for name, value in totals.items()}


def load_totals(home: Path, conversation: str) -> dict[str, float] | None:
    """The totals after the last run, or None when they are not known."""
    with suppress(OSError, ValueError):
        stored = json.loads(_file(home, conversation).read_text())
        return {str(name): float(value) for name, value in stored.items()}
    return None


def save_totals(home: Path, conversation: str, totals: dict[str, float]) -> None:
    from agent_farm.disk import make_directory, replace_file

    make_directory(_file(home, conversation).parent)
    replace_file(_file(home, conversation), json.dumps(totals))


def _file(home: Path, conversation: str) -> Path:
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in conversation)
    return home / "totals" / f"{safe}.json"

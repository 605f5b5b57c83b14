"""Marks the issue or item that a builder was spawned from as done, once its work has landed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_farm.builders.check_list import marked, read_source
from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, replace_file
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.forge.beads import PLACE, bead, close, giving_back
from agent_farm.inside import read_plain, require_inside
from agent_farm.paths import is_below


def left_claimed(farm: Farm, records: Sequence[BuilderRecord]) -> Iterator[str]:
    """Messages about removed builders whose issue in beads is still claimed."""
    claimed = [record for record in records if (record.source or "").startswith(f"{PLACE}#")]
    there = farm.registry.read() if claimed else {}
    for record in claimed:
        if record.id not in there:
            issue = str(record.source).split("#")[1]
            yield f"{issue} is still claimed; to give it back: {giving_back(issue)}"


def mark_landed(farm: Farm, record: BuilderRecord, checkout: Path | None = None) -> list[str]:
    """Mark it in the checkout where it landed, for a person to commit; returns messages."""
    if record.source is None:
        return []
    place, key, title = read_source(record.source)
    try:
        if place == PLACE:
            if not bead(farm.root, key).is_done:
                close(farm.root, key, record.id)
            return []
        with file_lock(farm.paths.locks / "marks.lock"):  # others may land at the same time
            return _mark(checkout or farm.root, place, key, title)
    except (AgentFarmError, OSError) as error:
        what = error.sentence if isinstance(error, AgentFarmError) else str(error)
        return [f"{key} could not be marked as done in {place}: {what}"]


def _mark(checkout: Path, place: str, key: str, title: str) -> list[str]:
    """No message if it is marked already, or no longer there."""
    if not is_below(place):
        return []
    file = require_inside(checkout, checkout / place)
    try:
        text = marked(read_plain(file).decode(), key, title)
    except (FileNotFoundError, UnicodeDecodeError):
        return []
    if text is None:
        return []
    replace_file(file, text.encode(), mode=file.stat().st_mode & 0o777)
    return [f"{key} is marked as done in {place}; the change is not committed"]

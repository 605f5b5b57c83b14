"""Whether a builder's runtime has reported that a message reached its model."""

from __future__ import annotations

import json
from pathlib import Path

from agent_farm.builders.events import load_events
from agent_farm.builders.record import BuilderRecord
from agent_farm.farm.farm import Farm
from agent_farm.own_files import open_own
from agent_farm.pane.journal import digest_of_prompt
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.plain_text import as_text


def has_come(events: Path, offset: int, wanted: tuple[str, str, str]) -> bool:
    """Matches run, kind and text, because another message may be submitted in the meantime."""
    with open_own(events) as file:
        file.seek(offset)
        for line in file:
            try:
                document = json.loads(line)
                if (document["run"], document["event"], document["detail"]["said"]) == wanted:
                    return True
            except (ValueError, KeyError, TypeError, RecursionError):  # being written, or not an event
                continue
    return False


def was_submitted(farm: Farm, record: BuilderRecord, text: str, *, since: float) -> bool:
    """Whether its runtime reported it; some runtimes have no event for that."""
    try:
        own_words = get_adapter(record.runtime, farm.root).cli.own_words
    except ValueError:
        return False
    said = digest_of_prompt(as_text(text, own_words))
    events = load_events(farm.run(record.id).events)
    return any(one.is_submission and one.detail["said"] == said and one.at >= since for one in events)

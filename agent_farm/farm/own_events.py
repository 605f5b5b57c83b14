"""Events that af writes into a builder's journal, besides those that its runtime reports."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agent_farm.builders.record import BuilderRecord
from agent_farm.farm.farm import Farm
from agent_farm.pane.journal import launcher_event, record_event


def event_of(
    record: BuilderRecord, event: str, reason: str | None, *, source: str = "af", state: str | None = None
) -> dict[str, Any]:
    return {**launcher_event(record.run, event, state, reason), "source": source}


def note(farm: Farm, record: BuilderRecord, event: str, reason: str | None = None) -> None:
    """For `af logs`, and for the age of a builder that is not running. Failing to write is no error."""
    with suppress(OSError):
        record_event(str(farm.run(record.id).directory), event_of(record, event, reason))

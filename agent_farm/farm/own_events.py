"""What `af` itself did to a builder, in the same journal as what its runtime reports."""

from __future__ import annotations

import time
from contextlib import suppress

from agent_farm.builders.record import BuilderRecord
from agent_farm.farm.farm import Farm
from agent_farm.pane.journal import record_event


def note(farm: Farm, record: BuilderRecord, event: str, reason: str | None = None) -> None:
    """For `af logs`, and for the age of a builder that is not running; it has been done, noted or not."""
    entry = {
        "at": time.time(),
        "run": record.run,
        "source": "af",
        "event": event,
        "state": None,
        "reason": reason,
        "conversation_id": None,
    }
    with suppress(OSError):
        record_event(str(farm.run(record.id).directory), entry)

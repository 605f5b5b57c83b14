"""Tokens and cost over time, summed into equal spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

BUCKETS = 48
_FAILED = ("failed", "interrupted")


def usage_over_time(
    sessions: Sequence[Mapping[str, Any]], *, now: float, seconds: float, count: int
) -> list[dict[str, Any]]:
    """`count` buckets, the last one ending now; a session counts where it was created."""
    span = seconds / count
    start = now - seconds
    buckets: list[dict[str, Any]] = [
        {
            "at": start + span * index,
            "sessions": 0,
            "failed": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "cost": 0.0,
        }
        for index in range(count)
    ]
    for session in sessions:
        index = int((float(session["created_at"]) - start) / span)
        if not 0 <= index < count:
            index = 0 if index < 0 else count - 1
        bucket = buckets[index]
        bucket["sessions"] += 1
        bucket["failed"] += session["state"] in _FAILED
        bucket["input_tokens"] += session["input_tokens"] or 0
        bucket["output_tokens"] += session["output_tokens"] or 0
        bucket["cost"] += session["cost"] or 0.0
    return buckets

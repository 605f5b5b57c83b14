"""Tokens and cost over time, summed into equal spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

BUCKETS = 48
_SUMS = ("sessions", "failed", "input_tokens", "output_tokens", "cost")


def usage_over_time(
    sums: Sequence[Mapping[str, Any]], *, now: float, seconds: float, count: int
) -> list[dict[str, Any]]:
    """`count` buckets, the last one ending now; `sums` are of the spans in which there was something."""
    span = seconds / count
    buckets: list[dict[str, Any]] = [
        {"at": now - seconds + span * index, **dict.fromkeys(_SUMS, 0), "cost": 0.0} for index in range(count)
    ]
    for found in sums:
        bucket = buckets[min(found["span"], count - 1)]
        for name in _SUMS:
            bucket[name] += found[name]
    return buckets

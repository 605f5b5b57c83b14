"""Reads how much a conversation has used, as far as its runtime says so in a hook or in its transcript."""

from __future__ import annotations

import os

from agent_farm.lean import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")
_LARGEST = 32 * 1024 * 1024  # a longer transcript is not read while a hook waits


def usage_of(payload: Mapping[str, object]) -> dict[str, float] | None:
    """Tokens of the whole conversation, and its cost if known; None if nothing is known."""
    told = payload.get("usage")
    if isinstance(told, dict):
        return _numbers({**told, "cost": payload.get("cost")})
    path = payload.get("transcript_path")
    return _of_transcript(path) if isinstance(path, str) and path else None


def _of_transcript(path: str) -> dict[str, float] | None:
    """Claude records the usage of each message, Codex the sum so far."""
    messages: dict[str, Mapping[str, object]] = {}
    total: Mapping[str, object] | None = None
    for line in _usage_lines(path):
        message = line.get("message")
        if isinstance(message, dict) and isinstance(message.get("usage"), dict):
            messages[str(message.get("id"))] = message["usage"]  # a streamed one is recorded repeatedly
        total = _sum_so_far(line) or total
    if total is not None:
        return _numbers({**total, "cached_tokens": total.get("cached_input_tokens")})
    if not messages:
        return None
    parts = [_claude_numbers(usage) for usage in messages.values()]
    return {name: sum(part.get(name, 0) for part in parts) for name in _COUNTS}


def _usage_lines(path: str) -> Iterator[Mapping[str, object]]:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                return
            for line in file:
                if b'"usage"' in line or b'"token_count"' in line:
                    document = loads(line)
                    if isinstance(document, dict):
                        yield document
    except (OSError, ValueError):
        return  # being written, or gone: the end of the next turn tries again


def _sum_so_far(line: Mapping[str, object]) -> Mapping[str, object] | None:
    payload = line.get("payload")
    info = payload.get("info") if isinstance(payload, dict) else None
    total = info.get("total_token_usage") if isinstance(info, dict) else None
    return total if isinstance(total, dict) else None


def _claude_numbers(usage: Mapping[str, object]) -> dict[str, float]:
    return _numbers({**usage, "cached_tokens": usage.get("cache_read_input_tokens")})


def _numbers(given: Mapping[str, object]) -> dict[str, float]:
    names = (*_COUNTS, "cost")
    return {name: value for name in names if isinstance(value := given.get(name), (int, float))}

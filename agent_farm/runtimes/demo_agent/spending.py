"""What the demo agent says it used: a token for every four bytes, at a price it made up."""

from __future__ import annotations

_BYTES_PER_TOKEN = 4
_DOLLARS_PER_TOKEN = 1e-6


def spending(given: int, made: int) -> dict[str, object]:
    """For so many bytes read and written: what a hook, or the result of a run, carries."""
    tokens = {
        "input_tokens": given // _BYTES_PER_TOKEN + 1,
        "output_tokens": made // _BYTES_PER_TOKEN + 1,
    }
    return {"usage": tokens, "cost": round(sum(tokens.values()) * _DOLLARS_PER_TOKEN, 9)}

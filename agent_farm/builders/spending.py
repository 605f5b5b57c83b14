"""What a builder has used, step by step: differences between what its runtime says after each turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.builders.events import is_count, is_moment
from agent_farm.errors import DamagedFile
from agent_farm.own_files import read_own


@dataclass(frozen=True, slots=True)
class Spent:
    """In one turn of the start `run`; `cost` is None where the runtime does not say it."""

    at: float
    run: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None


def load_spending(path: Path) -> list[Spent]:
    try:
        lines = read_own(path).splitlines()
    except (FileNotFoundError, DamagedFile):
        return []
    return list(_differences(_parsed(lines)))


def _parsed(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """A line that was cut short, or that somebody scribbled there, is passed over."""
    for line in lines:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and is_moment(document.get("at")):
            yield document


def _differences(told: Iterable[Mapping[str, Any]]) -> Iterator[Spent]:
    """A runtime tells the sum of a conversation; one that is new, or was cut back, begins anew."""
    before: Mapping[str, Any] = {}
    for now in told:
        goes_on = now.get("conversation") == before.get("conversation") and all(
            _number(now, name) >= _number(before, name) for name in ("input_tokens", "output_tokens")
        )
        base = before if goes_on else {}
        cost = now.get("cost")
        yield Spent(
            float(now["at"]),
            str(now.get("run")),
            int(_number(now, "input_tokens") - _number(base, "input_tokens")),
            int(_number(now, "output_tokens") - _number(base, "output_tokens")),
            int(max(0, _number(now, "cached_tokens") - _number(base, "cached_tokens"))),
            max(0.0, cost - _number(base, "cost")) if is_count(cost) else None,
        )
        before = now


def _number(told: Mapping[str, Any], name: str) -> float:
    value = told.get(name)
    return float(value) if is_count(value) else 0.0

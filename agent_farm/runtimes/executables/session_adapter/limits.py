"""What agent_runtime.json says of a runtime; what cannot be read there limits as if it were not there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_MINUTES = 30.0


@dataclass(frozen=True)
class Limits:
    minutes: float = DEFAULT_MINUTES
    cleanup: bool = True


def load_limits(root: Path, runtime: str) -> Limits:
    """The entry of that name, else the one whose adapter is a file of that name."""
    entries = _entries(root)
    wrappers = [entry for entry in entries.values() if Path(str(entry.get("adapter"))).name == runtime]
    entry = entries.get(runtime) or (wrappers[0] if wrappers else {})
    minutes = entry.get("timeout_minutes")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float):
        minutes = DEFAULT_MINUTES
    sane = math.isfinite(minutes) and minutes > 0
    return Limits(float(minutes) if sane else DEFAULT_MINUTES, entry.get("cleanup", True) is not False)


def _entries(root: Path) -> dict[str, Mapping[str, Any]]:
    try:
        runtimes = json.loads((root / "agent_runtime.json").read_bytes())["runtimes"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    if not isinstance(runtimes, Mapping):
        return {}
    return {name: entry for name, entry in runtimes.items() if isinstance(entry, Mapping)}

"""What agent_runtime.json says of a runtime; a file that cannot be read limits as if there were none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

DEFAULT_MINUTES = 30.0


@dataclass(frozen=True)
class Limits:
    minutes: float = DEFAULT_MINUTES
    cleanup: bool = True


def load_limits(root: Path, runtime: str) -> Limits:
    """The entry named after the executable, else the one whose adapter it is."""
    try:
        runtimes = json.loads((root / "agent_runtime.json").read_bytes())["runtimes"]
        entries = [entry for entry in runtimes.values() if Path(str(entry.get("adapter"))).name == runtime]
        entry = runtimes.get(runtime) or (entries[0] if entries else {})
        minutes = float(entry.get("timeout_minutes", DEFAULT_MINUTES))
        return Limits(minutes if minutes > 0 else DEFAULT_MINUTES, entry.get("cleanup", True) is not False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Limits()

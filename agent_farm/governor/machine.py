"""What the machine reports about its memory; if it reports nothing, no build is held back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_FOR_BUILDS = 0.8  # of all memory; the rest is for agents, editors and the user
_PRESSED = 10.0  # percent of the last ten seconds in which a process waited for memory


def has_room(wanted: int, others: int, proc: Path = _PROC) -> bool:
    """Whether a build that needs `wanted` bytes may start beside `others` of the same size."""
    if _pressure(proc) >= _PRESSED:
        return False
    if not wanted:
        return True
    total, available = _memory(proc, "MemTotal"), _memory(proc, "MemAvailable")
    if total is not None and wanted * (others + 1) > total * _FOR_BUILDS:
        return False
    return available is None or wanted <= available


def _pressure(proc: Path) -> float:
    with suppress(OSError, ValueError, IndexError):
        return float((proc / "pressure" / "memory").read_text().split("avg10=", 1)[1].split()[0])
    return 0.0


def _memory(proc: Path, name: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None

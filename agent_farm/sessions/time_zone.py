"""Time zones: one that is named, and the machine's own."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path

from agent_farm.errors import UsageError

LOCALTIME = Path("/etc/localtime")
_BROKEN = (OSError, ValueError, LookupError, struct.error)  # what zoneinfo raises of what is no zone


def named_zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except _BROKEN as error:
        raise UsageError(f"{name!r} is not a time zone", hint="a name as in 'Europe/Berlin'") from error


def machine_zone(environ: Mapping[str, str], localtime: Path = LOCALTIME) -> tzinfo:
    """By TZ, a name or a file, else by the file `localtime`; UTC only if there is neither."""
    if tz := environ.get("TZ", "").removeprefix(":"):
        try:
            return _zone_in(Path(tz)) if tz.startswith("/") else named_zone(tz)
        except (UsageError, *_BROKEN) as error:
            raise UsageError(
                f"TZ is {environ['TZ']!r}, which is not a time zone here",
                why="It may be the name or the file of one; rules as in CET-1CEST are not understood.",
                hint="as in TZ=Europe/Berlin, or name the schedule's own time zone",
            ) from error
    if not os.path.lexists(localtime) or _needs_no_file(localtime):
        return UTC
    try:
        return _zone_in(localtime)
    except _BROKEN as error:
        raise UsageError(
            f"{localtime} is not a time zone",
            why=str(error),
            hint="install tzdata, set TZ as in TZ=Europe/Berlin, or name the schedule's own time zone",
        ) from error


def _needs_no_file(localtime: Path) -> bool:
    """Small images lack tzdata, but keep the link to UTC."""
    return not localtime.exists() and localtime.resolve().name == "UTC"


def _zone_in(file: Path) -> tzinfo:
    """Read, because the name cannot be told from a copy."""
    from zoneinfo import ZoneInfo

    with file.open("rb") as content:
        return ZoneInfo.from_file(content)

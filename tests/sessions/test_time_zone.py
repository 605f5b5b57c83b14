"""The machine's own time zone, however the machine names it."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH

import pytest

from agent_farm.errors import UsageError
from agent_farm.sessions.time_zone import machine_zone

BERLIN = "Europe/Berlin"
SUMMER = datetime(2026, 7, 1, 12)


def file_of(zone: str) -> Path:
    return next(file for root in TZPATH if (file := Path(root, zone)).exists())


def hours(tz: str | None, localtime: Path) -> float:
    """How far the clock is ahead of UTC in summer."""
    offset = SUMMER.replace(tzinfo=machine_zone({} if tz is None else {"TZ": tz}, localtime)).utcoffset()
    assert offset is not None
    return offset / timedelta(hours=1)


@pytest.fixture
def localtime(tmp_path: Path) -> Path:
    """As a container has it: a copy, from which the zone's name cannot be told."""
    return Path(shutil.copy(file_of(BERLIN), tmp_path / "localtime"))


def test_without_tz_it_is_that_of_localtime_linked_or_copied(localtime: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file_of("Asia/Kolkata"))
    assert hours(None, localtime) == 2
    assert hours("", localtime) == 2
    assert hours(None, link) == 5.5


def test_tz_is_a_name_or_a_file(localtime: Path, tmp_path: Path) -> None:
    for tz in ("Asia/Kolkata", ":Asia/Kolkata", f"{file_of('Asia/Kolkata')}"):
        assert hours(tz, localtime) == 5.5
    assert hours(f":{localtime}", tmp_path / "none") == 2


def test_without_localtime_it_is_utc(tmp_path: Path) -> None:
    assert hours(None, tmp_path / "none") == 0
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "no-zones" / "Etc" / "UTC")
    assert hours(None, link) == 0


@pytest.mark.parametrize("tz", ["CET-1CEST,M3.5.0,M10.5.0/3", ":/none/localtime", "/", "Nowhere/City"])
def test_a_tz_that_is_neither_name_nor_file_is_refused_by_name(tz: str, localtime: Path) -> None:
    with pytest.raises(UsageError, match="TZ is") as refused:
        machine_zone({"TZ": tz}, localtime)
    assert tz in refused.value.what
    assert "TZ=Europe/Berlin" in (refused.value.hint or "")


@pytest.mark.parametrize("content", [b"", b"Europe/Berlin\n", b"TZif2", b"TZif2" + b"\xff" * 80])
def test_a_localtime_that_is_no_zone_is_refused(content: bytes, tmp_path: Path) -> None:
    localtime = tmp_path / "localtime"
    localtime.write_bytes(content)
    with pytest.raises(UsageError, match="localtime is not a time zone"):
        machine_zone({}, localtime)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "no-zones" / BERLIN)
    with pytest.raises(UsageError, match="dangling is not a time zone"):
        machine_zone({}, dangling)

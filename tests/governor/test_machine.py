"""What the kernel says of memory decides whether a build begins beside others."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.governor.machine import has_room

PRESSURE = (
    "some avg10={some} avg60=0.00 avg300=0.00 total=1\nfull avg10={full} avg60=0.00 avg300=0.00 total=0\n"
)
GIGABYTE = 1 << 30


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine with ten gigabytes, of which six are there to be had."""
    (tmp_path / "meminfo").write_text("MemTotal: 10485760 kB\nMemFree: 1 kB\nMemAvailable: 6291456 kB\n")
    (tmp_path / "pressure").mkdir()
    return tmp_path


@pytest.mark.parametrize("wanted", [0, GIGABYTE], ids=["no sum for a build", "a sum that is there"])
@pytest.mark.parametrize(
    ("some", "room"), [("0.00", True), ("9.99", True), ("10.00", False), ("87.41", False)]
)
def test_no_build_begins_while_somebody_waits_for_memory(
    proc: Path, some: str, room: bool, wanted: int
) -> None:
    (proc / "pressure/memory").write_text(PRESSURE.format(some=some, full="0.00"))
    assert has_room(wanted, 1, proc) is room


@pytest.mark.parametrize("text", [None, "", "some\n", "some avg10=lots\n"], ids=repr)
def test_a_kernel_that_says_nothing_of_pressure_holds_nothing_back(proc: Path, text: str | None) -> None:
    if text is not None:
        (proc / "pressure/memory").write_text(text)
    assert has_room(GIGABYTE, 1, proc)


@pytest.mark.parametrize(
    ("wanted", "others", "room"),
    [(6, 0, True), (7, 0, False), (4, 1, True), (5, 1, False), (1, 7, True), (1, 8, False)],
)
def test_builds_take_what_is_there_and_leave_a_fifth_of_all_memory(
    proc: Path, wanted: int, others: int, room: bool
) -> None:
    assert has_room(wanted * GIGABYTE, others, proc) is room


def test_a_machine_that_says_nothing_holds_nothing_back(tmp_path: Path) -> None:
    assert has_room(100 * GIGABYTE, 9, tmp_path)

"""What the kernel says of memory decides whether a build begins beside others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.governor.machine import Reserved, has_room
from tests.governor.conftest import Tree

PRESSURE = (
    "some avg10={some} avg60=0.00 avg300=0.00 total=1\nfull avg10={full} avg60=0.00 avg300=0.00 total=0\n"
)
GIGABYTE = 1 << 30
UNKNOWN = Reserved(0, 0)
# Takes as many megabytes as it is told, and says so.
TAKER = "import sys; taken = b'x' * (int(sys.argv[1]) << 20); print('taken', flush=True); sys.stdin.read()"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine with ten gigabytes, of which six are there to be had."""
    (tmp_path / "meminfo").write_text("MemTotal: 10485760 kB\nMemFree: 1 kB\nMemAvailable: 6291456 kB\n")
    (tmp_path / "pressure").mkdir()
    return tmp_path


@pytest.fixture
def process(proc: Path) -> Callable[..., None]:
    def add(pid: int, *children: int, gigabytes: int) -> None:
        task = proc / str(pid) / "task" / str(pid)
        task.mkdir(parents=True, exist_ok=True)
        (task / "children").write_text(" ".join(map(str, children)) + " ")
        of_files, own = (size * GIGABYTE // os.sysconf("SC_PAGE_SIZE") for size in (3, gigabytes))
        (task.parent.parent / "statm").write_text(f"9999999 {own + of_files} {of_files} 1 0 1 0\n")

    return add


@pytest.mark.parametrize("wanted", [0, GIGABYTE], ids=["no sum for a build", "a sum that is there"])
@pytest.mark.parametrize(
    ("some", "room"), [("0.00", True), ("9.99", True), ("10.00", False), ("87.41", False)]
)
def test_no_build_begins_while_somebody_waits_for_memory(
    proc: Path, some: str, room: bool, wanted: int
) -> None:
    (proc / "pressure/memory").write_text(PRESSURE.format(some=some, full="0.00"))
    assert has_room(wanted, [UNKNOWN], proc) is room


@pytest.mark.parametrize("text", [None, "", "some\n", "some avg10=lots\n"], ids=repr)
def test_a_kernel_that_says_nothing_of_pressure_holds_nothing_back(proc: Path, text: str | None) -> None:
    if text is not None:
        (proc / "pressure/memory").write_text(text)
    assert has_room(GIGABYTE, [UNKNOWN], proc)


@pytest.mark.parametrize(
    ("wanted", "others", "room"),
    [
        (6, [], True),
        (7, [], False),
        (1, [7], True),
        (1, [7, 1], False),
        (2, [1, 5], True),
        (2, [1, 6], False),
    ],
)
def test_builds_leave_a_fifth_of_all_memory_each_counted_at_its_own_size(
    proc: Path, wanted: int, others: list[int], room: bool
) -> None:
    ended = 4_000_000  # has taken what it takes, as far as can be seen
    held = [Reserved(one * GIGABYTE, ended) for one in others]
    assert has_room(wanted * GIGABYTE, held, proc) is room


@pytest.mark.parametrize(("others", "room"), [(7, True), (8, False)])
def test_who_does_not_say_what_it_takes_is_counted_as_one_like_the_next(
    proc: Path, others: int, room: bool
) -> None:
    assert has_room(GIGABYTE, [UNKNOWN] * others, proc) is room


@pytest.mark.parametrize(
    ("taken", "room"), [(None, False), (0, False), (1, False), (2, True), (4, True), (9, True)]
)
def test_what_a_build_has_reserved_and_not_taken_yet_is_not_there_for_the_next(
    proc: Path, process: Callable[..., None], taken: int | None, room: bool
) -> None:
    """Of six gigabytes that are available, a build of four has some still to come."""
    if taken is not None:
        process(77, gigabytes=taken)
    first = Reserved(4 * GIGABYTE, 0 if taken is None else 77)
    assert has_room(4 * GIGABYTE, [first], proc) is room


def test_what_all_processes_of_a_build_have_taken_counts(proc: Path, process: Callable[..., None]) -> None:
    process(77, 78, 79, gigabytes=0)
    process(78, gigabytes=1)
    process(79, 80, gigabytes=0)
    first = Reserved(4 * GIGABYTE, 77)
    assert not has_room(4 * GIGABYTE, [first], proc)  # 80 has ended
    process(80, gigabytes=1)
    assert has_room(4 * GIGABYTE, [first], proc)


def test_real_processes_have_taken_what_they_took(proc: Path, tmp_path: Path) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {TAKER!r}, '200'])"
    parent = subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "taken\n"
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        for pid in (str(parent.pid), *children):
            (tmp_path / pid).symlink_to(f"/proc/{pid}")
        available = 6 * GIGABYTE
        reserved = Reserved(available, parent.pid)
        assert has_room(150 << 20, [reserved], proc)
        assert not has_room(400 << 20, [reserved], proc)
    finally:
        parent.communicate("")


def test_the_group_of_a_build_says_what_it_has_taken(
    proc: Path, tree: Tree, process: Callable[..., None]
) -> None:
    process(77, gigabytes=0)
    one = tree.build(77)
    (one / "memory.stat").write_text(f"anon {GIGABYTE}\nfile {9 * GIGABYTE}\nshmem {GIGABYTE}\n")
    first = Reserved(4 * GIGABYTE, 77)
    assert has_room(4 * GIGABYTE, [first], proc)
    (one / "memory.stat").unlink()
    assert not has_room(4 * GIGABYTE, [first], proc)


def test_a_machine_that_says_nothing_holds_nothing_back(tmp_path: Path) -> None:
    assert has_room(100 * GIGABYTE, [UNKNOWN] * 9, tmp_path)

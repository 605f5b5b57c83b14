"""Builds of many builders on one machine: the real stand-ins, before programs and a real make."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_farm.governor import build_shim
from agent_farm.governor.slots import Limits, NoSlots, make_places, slot, waiting_runs
from tests.waiting import wait_until

SHIM = Path(build_shim.__file__)
# Writes when it begins and ends, and how many run beside it.
BUILD = """#!/bin/sh
echo $$ > "$PLACE/running/$$"
ls "$PLACE/running" | wc -l >> "$PLACE/beside"
while [ -e "$PLACE/hold" ]; do sleep 0.05; done
rm "$PLACE/running/$$"
exit ${CODE:-0}
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "running").mkdir()
    (tmp_path / "hold").touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "make").write_text(BUILD)
    (tools / "make").chmod(0o755)
    return tmp_path


def configure(place: Path, run: str, *, slots: int, memory: int = 0, jobs: int = 0) -> Path:
    """What a start of a builder writes; the directory that its PATH begins with is in it."""
    limits = Limits(place / "builds", slots, memory)
    make_places(limits)
    directory = place / run
    directory.mkdir(exist_ok=True)
    document = {
        "run": run, "directory": str(limits.directory), "slots": slots, "memory": memory,
        "commands": ["make", "tool test"], "jobs": jobs,
    }  # fmt: skip
    (directory / build_shim.FILE).write_text(json.dumps(document))
    return directory


@pytest.fixture
def start(place: Path) -> Iterator[Start]:
    begun: list[subprocess.Popen[str]] = []

    def begin(directory: Path, *words: str, **env: str) -> subprocess.Popen[str]:
        path = os.pathsep.join((str(directory / build_shim.BIN), str(place / "tools"), os.environ["PATH"]))
        argv = [sys.executable, "-I", "-S", str(SHIM), str(directory), *(words or ("make",))]
        child = subprocess.Popen(
            argv,
            env={**os.environ, "PATH": path, "PLACE": str(place), **env},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place,
        )  # fmt: skip
        begun.append(child)
        return child

    yield begin
    for child in begun:
        child.kill()
        child.communicate()


def running(place: Path) -> int:
    return len(list((place / "running").iterdir()))


def test_no_more_than_its_slots_run_and_all_come_to_their_turn(place: Path, start: Start) -> None:
    builds = [start(configure(place, f"run{number}", slots=2)) for number in range(6)]
    wait_until(lambda: running(place) == 2, what="two builds")
    wait_until(lambda: len(waiting_runs(place / "builds")) == 4, what="four that wait")
    (place / "hold").unlink()
    for build in builds:
        _, told = build.communicate(timeout=60)
        assert build.returncode == 0, told
    beside = [int(line) for line in (place / "beside").read_text().split()]
    assert len(beside) == 6
    assert max(beside) == 2
    assert waiting_runs(place / "builds") == frozenset()


def test_who_is_killed_frees_a_slot_or_a_place_in_the_queue(place: Path, start: Start) -> None:
    first = start(configure(place, "one", slots=1))
    wait_until(lambda: running(place) == 1, what="the first build")
    second = start(configure(place, "two", slots=1))
    third = start(configure(place, "three", slots=1))
    wait_until(lambda: waiting_runs(place / "builds") == {"two", "three"}, what="two that wait")
    second.kill()
    second.wait()
    wait_until(lambda: waiting_runs(place / "builds") == {"three"}, what="one that waits")
    first.kill()
    wait_until(lambda: len((place / "beside").read_text().split()) == 2, what="the next one's turn")
    (place / "hold").unlink()
    assert third.wait(timeout=60) == 0


def test_what_counts_as_no_build_runs_at_once_and_what_it_is_called_with_stays(
    place: Path, start: Start
) -> None:
    tool = place / "tools" / "tool"
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"; exit 3\n')
    tool.chmod(0o755)
    directory = configure(place, "one", slots=1)
    start(directory)
    wait_until(lambda: running(place) == 1, what="a build")
    other = start(directory, "tool", "start", "a b", "", "$(x)", "-v")
    assert other.communicate(timeout=60)[0] == "start\na b\n\n$(x)\n-v\n"
    assert other.returncode == 3
    build = start(directory, "tool", "--quiet", "test", "a b")
    wait_until(lambda: waiting_runs(place / "builds") == {"one"}, what="a build that waits")
    (place / "hold").unlink()
    told, warned = build.communicate(timeout=60)
    assert told == "--quiet\ntest\na b\n"
    assert warned == "[agent-farm] tool waits for its turn to build\n"
    assert build.returncode == 3


def test_what_is_no_lock_of_ours_neither_holds_up_a_build_nor_ends_the_limit(
    place: Path, start: Start
) -> None:
    first = start(configure(place, "one", slots=1))
    wait_until(lambda: running(place) == 1, what="a build")
    os.mkfifo(place / "builds/slot-pipe")
    (place / "builds/slot-link").symlink_to(place / "nowhere")
    (place / "builds/slot-directory").mkdir()
    second = start(place / "one")
    wait_until(lambda: waiting_runs(place / "builds") == {"one"}, what="a build that waits")
    (place / "hold").unlink()
    assert first.wait(timeout=60) == second.wait(timeout=60) == 0
    assert not (place / "nowhere").exists()
    (place / "builds/door").unlink()
    os.mkfifo(place / "builds/door")
    assert start(place / "one").wait(timeout=60) == 0
    with pytest.raises(NoSlots, match="not a plain file"):
        make_places(Limits(place / "builds", 1))


def test_a_build_that_another_builders_build_starts_needs_no_slot_of_its_own(
    place: Path, start: Start
) -> None:
    """The PATH of a builder that was spawned from another builder's pane begins with both."""
    (place / "hold").unlink()
    outer, inner = configure(place, "outer", slots=1), configure(place, "inner", slots=1)
    for directory in (outer, inner):
        (directory / build_shim.BIN).mkdir()
        script = directory / build_shim.BIN / "make"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {SHIM} {directory} make "$@"\n')
        script.chmod(0o755)
    tools = os.pathsep.join((str(place / "tools"), os.environ["PATH"]))
    both = f"{outer / build_shim.BIN}/:{inner / build_shim.BIN}:{tools}"
    assert start(outer, PATH=both).wait(timeout=60) == 0


def test_one_that_waits_cannot_be_stopped_at_the_door(place: Path, start: Start) -> None:
    start(configure(place, "one", slots=1))
    wait_until(lambda: running(place) == 1, what="a build")
    waiting = start(configure(place, "two", slots=1))
    wait_until(lambda: waiting_runs(place / "builds") == {"two"}, what="a build that waits")
    waiting.send_signal(signal.SIGTSTP)
    third = start(configure(place, "three", slots=1))
    (place / "hold").unlink()
    assert waiting.wait(timeout=60) == third.wait(timeout=60) == 0


def test_who_cannot_say_that_it_waits_holds_up_nobody(place: Path) -> None:
    """What is told goes to a pager, say, in which somebody reads."""
    limits = Limits(place / "builds", 1)
    make_places(limits)
    reads, waits, done = threading.Event(), threading.Event(), threading.Event()

    def second() -> None:
        with slot(limits, "two", waits=lambda: (waits.set(), reads.wait(60))[0]):
            done.set()

    waiting = threading.Thread(target=second)
    with slot(limits, "one"):
        waiting.start()
        assert waits.wait(60)
    with slot(limits, "three", waits=lambda: pytest.fail("the slot is free")):
        assert not done.is_set()
    reads.set()
    waiting.join(60)
    assert done.is_set()


def test_what_a_slot_was_held_for_is_forgotten_with_it(place: Path) -> None:
    limits = Limits(place / "builds", 1, 60_000)
    make_places(limits)
    with slot(limits, "one"):
        assert (limits.directory / "slot-0").read_text().split() == ["60000", "0"]
    assert (limits.directory / "slot-0").read_text().split() == []


def test_a_build_that_writes_to_nobody_ends(place: Path, start: Start) -> None:
    """As from a shell: Python ignores SIGPIPE, and what it becomes would, too."""
    (place / "tools/make").write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    for words in (("make",), ("tool", "start")):
        (place / "tools/tool").write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
        (place / "tools/tool").chmod(0o755)
        said, _ = start(configure(place, "one", slots=1), *words).communicate(timeout=60)
        assert int(said.split()[1], 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0


def test_its_end_and_the_signals_it_gets_are_those_of_the_build(place: Path, start: Start) -> None:
    directory = configure(place, "one", slots=1)
    build = start(directory)
    wait_until(lambda: running(place) == 1, what="a build")
    build.send_signal(signal.SIGTERM)
    assert build.wait(timeout=60) == 128 + signal.SIGTERM
    (place / "hold").unlink()
    assert start(directory, CODE="7").wait(timeout=60) == 7
    assert start(directory, "no-such-tool").wait(timeout=60) == 127


def test_a_build_comes_after_agents_and_before_them_when_memory_runs_out(place: Path, start: Start) -> None:
    start(configure(place, "one", slots=1))
    wait_until(lambda: running(place) == 1, what="a build")
    pid = int(next((place / "running").iterdir()).read_text())
    assert os.getpriority(os.PRIO_PROCESS, pid) >= os.getpriority(os.PRIO_PROCESS, 0) + 1
    assert Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "500"


def test_where_the_slots_cannot_be_reached_nothing_waits(place: Path, start: Start) -> None:
    directory = configure(place, "one", slots=1)
    shutil.rmtree(place / "builds")
    (place / "hold").unlink()
    assert start(directory).wait(timeout=60) == 0
    (directory / build_shim.FILE).unlink()
    assert start(directory).wait(timeout=60) == 0


def test_one_that_would_not_fit_beside_others_runs_alone(place: Path) -> None:
    limits = Limits(place / "builds", 2, 1_000_000)
    make_places(limits)
    with slot(limits, "alone", waits=lambda: pytest.fail("it waits")):
        pass


def megabytes_of_this_machine() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def test_what_another_repositorys_larger_build_needs_is_known_and_how_much_of_it_is_taken(
    place: Path, start: Start
) -> None:
    """Three quarters of all memory and a tenth are more than four fifths."""
    whole = megabytes_of_this_machine()
    start(configure(place, "large", slots=2, memory=whole * 3 // 4))
    wait_until(lambda: running(place) == 1, what="a build")
    build = next((place / "running").iterdir()).name
    assert (place / "builds/slot-0").read_text().split() == [str(whole * 3 // 4), build]
    small = start(configure(place, "small", slots=2, memory=whole // 10))
    wait_until(lambda: waiting_runs(place / "builds") == {"small"}, what="one that waits")
    assert running(place) == 1
    (place / "hold").unlink()
    assert small.wait(timeout=60) == 0


@pytest.mark.parametrize("noted", [b"", b"9", b"-9999999 1", b"a b", b"1_0 1", b"1 2 3", b"\xff"], ids=repr)
def test_a_slot_that_does_not_say_what_it_was_held_for_counts_as_one_like_the_next(
    place: Path, noted: bytes
) -> None:
    """A sandbox may let its build read there, and not write."""
    limits = Limits(place / "builds", 2, 1)
    make_places(limits)
    with slot(limits, "one") as held:
        held.path.write_bytes(noted)
        with slot(limits, "two", waits=lambda: pytest.fail("it waits")) as other:
            assert other.path != held.path


def test_all_makes_share_the_jobs_and_what_a_killed_one_held_comes_back(place: Path, start: Start) -> None:
    (place / "tools/make").unlink()
    recipe = "\t@echo >> begun; while [ -e hold ]; do sleep 0.05; done\n"
    (place / "Makefile").write_text(f"all: a b c d e f\na b c d e f:\n{recipe}")
    begun = place / "begun"

    def jobs() -> int:
        return len(begun.read_text()) if begun.exists() else 0

    first = start(configure(place, "one", slots=2, jobs=2))
    wait_until(lambda: jobs() == 3, what="one job of its own and two that are shared")
    second = start(configure(place, "two", slots=2, jobs=2))
    wait_until(lambda: jobs() == 4, what="one job of the second one's own")
    subprocess.run(["pkill", "-9", "-P", str(first.pid)], check=True)  # its make, with two tokens
    first.wait(timeout=60)
    (place / "hold").unlink()
    assert second.wait(timeout=60) == 0
    (place / "hold").touch()
    begun.unlink()
    start(configure(place, "three", slots=2, jobs=2))
    wait_until(lambda: jobs() == 3, what="all the jobs again")
    (place / "hold").unlink()


@pytest.mark.skipif(not os.path.exists("/proc/self/autogroup"), reason="processors are not shared by session")
@pytest.mark.parametrize(("own", "expected"), [("one", "10"), ("another", "0")])
def test_a_session_in_which_a_builder_builds_comes_after_others(place: Path, own: str, expected: str) -> None:
    """The person's terminals come first; one in which somebody else calls the stand-in stays as it is."""
    (place / "hold").unlink()
    directory = configure(place, "one", slots=1)
    path = os.pathsep.join((str(directory / build_shim.BIN), str(place / "tools"), os.environ["PATH"]))
    build = (sys.executable, "-I", "-S", str(SHIM), str(directory), "make")
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@"; cat /proc/self/autogroup', "sh", *build],
        env={**os.environ, "PATH": path, "PLACE": str(place), "AF_RUN": own},
        cwd=place, start_new_session=True, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split()[-1] == expected, done.stderr

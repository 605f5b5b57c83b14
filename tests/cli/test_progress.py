"""What a long step says of itself."""

from __future__ import annotations

import io
from threading import Thread

import pytest

from agent_farm.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_in_place_with_rate_and_time_left() -> None:
    now, screen = [0.0], Terminal()
    progress = Progress(screen, lambda: now[0])
    progress.step("Ending", 0, 100)
    progress.step("Ending", 30, 100)
    assert screen.getvalue() == ""  # what is over soon is not spoken of
    now[0] = 2.0
    progress.step("Ending", 50, 100)
    progress.step("Ending", 51, 100)  # at once: not drawn again
    assert screen.getvalue() == "\r\x1b[KEnding: 50 of 100, 25/s, 2 s left"
    progress.clear()
    progress.clear()
    assert screen.getvalue().endswith("left\r\x1b[K")
    progress.step("Starting", 0, 100)
    now[0] = 12.0
    progress.step("Starting", 1, 100)
    assert screen.getvalue().endswith("Starting: 1 of 100, 10 s each, 16 min 30 s left")
    progress.step("Starting", 100, 100)
    assert screen.getvalue().endswith("16 min 30 s left")


def test_plain_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    progress = Progress(io.StringIO(), lambda: now[0])
    for second in range(25):
        now[0] = float(second)
        progress.step("Putting away", second, 30)
    assert capsys.readouterr().err == (
        "Putting away: 10 of 30, 1/s, 20 s left\nPutting away: 20 of 30, 1/s, 10 s left\n"
    )


def test_steps_that_take_turns_over_several_groups() -> None:
    """The time left of each is that of all steps together."""
    now, screen = [0.0], Terminal()
    progress = Progress(screen, lambda: now[0])
    for group in range(2):
        for what in ("Looking", "Ending"):
            for done in range(101):
                now[0] += 0.05
                progress.step(what, group * 100 + done, 500)
    # 199 in the 15 s since the first was ended, and as long again for each hundred that is left
    assert screen.getvalue().endswith("Ending: 200 of 500, 13/s, 23 s left")


def test_what_was_there_before_the_step_began_is_not_its_work() -> None:
    now, screen = [0.0], Terminal()
    progress = Progress(screen, lambda: now[0])
    progress.step("Checking out", 6, 10)
    now[0] = 10.0
    progress.step("Checking out", 7, 10)
    assert screen.getvalue().endswith("Checking out: 7 of 10, 10 s each, 30 s left")


def test_nothing_is_drawn_while_something_else_is_printed() -> None:
    now, screen = [0.0], Terminal()
    progress = Progress(screen, lambda: now[0])
    progress.step("Spawning", 0, 40)
    now[0] = 2.0
    progress.step("Spawning", 1.5, 40)
    assert screen.getvalue().endswith("Spawning: 1 of 40, 1 s each, 51 s left")
    with progress.aside():
        assert screen.getvalue().endswith("\r\x1b[K")
        free = list[bool]()
        other = Thread(target=lambda: free.append(progress._lock.acquire(blocking=False)))
        other.start()
        other.join()
        assert free == [False]

"""What a long step says of itself."""

from __future__ import annotations

import io

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

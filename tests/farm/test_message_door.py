"""A message passed in beside the screen is said once or typed once: whoever moves its file first has it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_farm.farm import message_door
from agent_farm.farm.message_door import pass_in
from tests.waiting import wait_until

RUN = "0123456789ab"


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Path]:
    """Opened by a process of the run that does nothing by itself."""
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "AF_RUN": RUN}) as process:
        place = tmp_path / "door"
        place.mkdir()
        (place / "open").write_text(str(process.pid))
        yield place
        process.kill()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes the message has to get its turn first."""
    monkeypatch.setattr(message_door, "_TAKEN_SECONDS", 120.0)


def take(door: Path, error: str | None) -> list[str]:
    """Like the plugin: rename it, and say what came of it."""
    (message,) = wait_until(lambda: list(door.glob("*.json")), what="a message")
    text = json.loads(message.read_text())["text"]
    message.rename(message.with_suffix(".taken"))
    temporary = message.with_suffix(".tmp")
    temporary.write_text(json.dumps({"error": error}))
    temporary.rename(message.with_suffix(".done"))
    return [text]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(("error", "outcome"), [(None, "submitted"), ("no session", "failed")])
def test_what_is_taken_is_not_typed(door: Path, error: str | None, outcome: str) -> None:
    taken: list[str] = []
    plugin = threading.Thread(target=lambda: taken.extend(take(door, error)))
    plugin.start()
    delivery = pass_in(door, RUN, "Also cover this")
    plugin.join()
    assert delivery is not None
    assert (delivery.outcome, delivery.reason, taken) == (outcome, error, ["Also cover this"])
    assert [file.name for file in door.iterdir()] == ["open"]


def test_a_closed_door_and_one_of_another_run_take_nothing(door: Path, tmp_path: Path) -> None:
    assert pass_in(tmp_path / "none", RUN, "x") is None
    assert pass_in(door, "another", "x") is None
    (door / "open").write_text("what a builder scribbled")
    assert pass_in(door, RUN, "x") is None
    assert [file.name for file in door.iterdir()] == ["open"]


@pytest.mark.parametrize("instead", [os.mkfifo, Path.touch, lambda door: door.symlink_to("elsewhere")])
def test_what_is_no_directory_of_ours_is_no_door(
    door: Path, tmp_path: Path, instead: Callable[[Path], object]
) -> None:
    elsewhere = door.rename(tmp_path / "elsewhere")
    instead(door)
    assert pass_in(door, RUN, "x") is None
    assert [file.name for file in elsewhere.iterdir()] == ["open"]


ODD_ANSWERS: list[Callable[[Path], object]] = [
    Path.mkdir,
    os.mkfifo,
    lambda done: done.symlink_to("/dev/zero"),
    lambda done: done.write_text('{"error":' + "[" * 100_000 + "]" * 100_000 + "}"),
    lambda done: done.write_text("[1]"),
    lambda done: done.write_text(json.dumps({"error": "long" * 100_000})),
]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("answer", ODD_ANSWERS)
def test_whatever_a_builder_answers_in_its_stead_ends_no_command(
    door: Path, answer: Callable[[Path], object]
) -> None:
    """It takes the message and leaves a directory in its place."""

    def take_it() -> None:
        (message,) = wait_until(lambda: list(door.glob("*.json")), what="a message")
        message.unlink()  # first: with an answer there, `af` would take the message back
        message.mkdir()
        answer(message.with_suffix(".done"))

    builder = threading.Thread(target=take_it)
    builder.start()
    delivery = pass_in(door, RUN, "x")
    builder.join()
    assert delivery is not None
    assert (delivery.outcome, len(delivery.reason or "") < 1000) == ("failed", True)


@pytest.mark.slow
def test_what_nobody_takes_is_taken_back_to_be_typed(door: Path) -> None:
    assert pass_in(door, RUN, "x") is None
    assert [file.name for file in door.iterdir()] == ["open"]

"""Text reaches the program byte for byte and is submitted, or the answer says that it was not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_farm.errors import UsageError
from agent_farm.tmux import delivery
from agent_farm.tmux.delivery import Pace, deliver
from agent_farm.tmux.screen import ScreenRules
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.tmux_process import TmuxAnswer, call_tmux
from tests.tmux.stage import QUICK, RULES, start_receiver, tmux
from tests.waiting import wait_until

HOSTILE = {
    "shell": "$(touch x) `touch y` \"double\" 'single' ${HOME} ~ && rm -rf / # #{pane_id} #(touch z)",
    "semicolon": "ends like a tmux command;",
    "dash": "-rf --",
    "unicode": "日本語 😀 e\u0301 \u200d \u202e ünï",
    "lines": "first\n\n  indented\n\ttabbed\nlast",
    "key names": "Enter C-c Escape",
    "format": "%H:%M #[fg=red] #S",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_text_arrives_byte_for_byte(tmp_path: Path, text: str) -> None:
    stage = start_receiver(tmp_path)
    delivery = stage.send(text)
    assert (delivery.outcome, delivery.source) == ("submitted", "event")
    assert stage.messages() == [text.encode()]
    assert tmux("list-buffers") == ""


@pytest.mark.parametrize("shown", ["tail", "collapsed"])
def test_500_kb_arrive_whole(tmp_path: Path, shown: str) -> None:
    stage = start_receiver(tmp_path, "--shown", shown)
    text = "\n".join(f"line {number} 😀 {'x' * 80}" for number in range(5000))
    assert len(text) > 450_000
    assert stage.send(text).outcome == "submitted"
    assert stage.messages() == [text.encode()]


def test_the_screen_confirms_where_no_event_can(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    assert stage.send("hello", event=False).source == "screen"
    assert stage.send("again", event=False).source == "screen"
    assert stage.messages() == [b"hello", b"again"]


def test_an_event_that_never_comes_is_not_waited_for_when_the_input_line_is_empty(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    delivery = stage.send("hello", watch=lambda: lambda: False)
    assert (delivery.outcome, delivery.source) == ("submitted", "screen")


@pytest.mark.parametrize("event", [True, False])
def test_enter_is_pressed_again_and_the_text_not_pasted_again(tmp_path: Path, event: bool) -> None:
    stage = start_receiver(tmp_path, "--swallow", "2")
    assert stage.send("once", event=event).outcome == "submitted"
    assert stage.messages() == [b"once"]


def test_a_program_that_takes_no_enter_is_a_failure(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path, "--swallow", "99")
    delivery = stage.send("stuck")
    assert delivery.outcome == "failed"
    assert "Enter pressed 3 times" in (delivery.reason or "")
    assert stage.messages() == []


def test_a_program_that_shows_nothing_is_confirmed_by_its_event(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path, "--shown", "never")
    assert stage.send("hidden").source == "event"


def test_a_dialog_holds_the_text_back(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path, "--dialog", "--draft", "1")
    stage.wait_for("rx?")
    # the dialog is above the line, as a question is above its answers
    delivery = stage.send("boom", rules=ScreenRules(ready=r"^never$", dialog=RULES.dialog))
    assert delivery.outcome == "held"
    assert "delete everything?" in (delivery.reason or "")
    assert "boom" not in stage.screen()


def test_a_draft_holds_the_text_back_and_is_left_alone(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path, "--draft", "half a thou")
    stage.wait_for("half a thou")
    delivery = stage.send("boom")
    assert delivery.outcome == "held"
    assert "half a thou" in (delivery.reason or "")
    tmux("send-keys", "-t", stage.address.pane_id, "ght", "Enter")
    wait_until(stage.messages, what="the draft")
    assert stage.messages() == [b"half a thought"]


def test_what_is_shown_settles_without_being_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look is a process; Enter comes after the text has stood there for as long as that."""
    stage, calls = start_receiver(tmp_path), list[tuple[float, str]]()

    def call(socket: str | None, commands: Sequence[Sequence[str]], **more: Any) -> TmuxAnswer:
        begun = time.monotonic()
        try:
            return call_tmux(socket, commands, **more)
        finally:
            calls.append((begun, " ".join(commands[0])))

    monkeypatch.setattr(delivery, "call_tmux", call)
    assert stage.send("hello", pace=replace(QUICK, settle=1.5)).outcome == "submitted"
    before_enter = [begun for begun, words in calls if not words.endswith("Enter")]
    assert max(after - before for before, after in pairwise(before_enter)) > 1.3


def test_a_draft_that_is_just_being_sent_holds_nothing_back(tmp_path: Path) -> None:
    """A CLI reports a message before it has taken it from its input line."""
    stage = start_receiver(tmp_path, "--draft", "the first")
    looks = count()

    def enter_after_a_look() -> None:
        if next(looks) == 1:
            tmux("send-keys", "-t", stage.address.pane_id, "Enter")

    pace = Pace(draft=120, ready=120)
    delivery = stage.send("the second", hesitate=enter_after_a_look, pace=pace)
    assert delivery.outcome == "submitted", delivery
    assert stage.messages() == [b"the first", b"the second"]


def test_an_earlier_message_on_the_screen_is_no_draft(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    assert [stage.send(text).outcome for text in ("one", "two")] == ["submitted", "submitted"]
    assert "rx> 3 bytes taken" in stage.screen()


def test_a_bare_shell_gets_nothing(tmp_path: Path) -> None:
    server = TmuxServer()
    shell = server.start_session("af-rx-1", ("/bin/bash", "--norc"), cwd=tmp_path)
    wait_until(lambda: "$" in server.capture(shell.pane_id) or "#" in server.capture(shell.pane_id))
    delivery = deliver(
        server.socket, shell.pane_id, "touch x", lock=tmp_path / "lock", screen=ScreenRules(), pace=QUICK
    )
    assert delivery.outcome == "held"
    assert "shell" in (delivery.reason or "")
    assert "touch" not in server.capture(shell.pane_id)
    assert not (tmp_path / "x").exists()


def test_only_the_runtime_itself_is_typed_into(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    pid = int(tmux("display-message", "-p", "-t", stage.address.pane_id, "#{pane_pid}"))
    other = stage.send("boom", runtime_pid=pid + 1)
    assert (other.outcome, stage.messages()) == ("held", [])
    assert stage.send("fine", runtime_pid=pid).outcome == "submitted"


def test_a_program_that_has_not_asked_for_brackets_yet_gets_them(tmp_path: Path) -> None:
    """It shows its input line first; without them the line break would be Enter, and `!` a key."""
    stage = start_receiver(tmp_path, "--unasked")
    assert stage.send("!first\nsecond").outcome == "submitted"
    assert stage.messages() == [b"!first\nsecond"]


def test_nothing_is_typed_before_there_is_an_input_line(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    delivery = stage.send("boom", rules=ScreenRules(ready=r"^never$"))
    assert (delivery.outcome, delivery.reason) == ("held", "its input line is not on the screen")
    assert "boom" not in stage.screen()


def test_a_runtime_that_cannot_take_it_yet_is_waited_for(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    reasons = iter(["it is starting"] * 3)
    patient = replace(QUICK, ready=60)
    assert stage.send("hello", hesitate=lambda: next(reasons, None), pace=patient).outcome == "submitted"
    held = stage.send("boom", hesitate=lambda: "it is starting")
    assert (held.outcome, held.reason) == ("held", "it is starting")
    assert stage.messages() == [b"hello"]


@pytest.mark.slow
def test_a_tmux_that_does_not_answer_says_nothing_about_the_pane(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    server = int(tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        deliveries = [stage.send("boom") for _ in range(4)]
        took = time.monotonic() - begun
    finally:
        os.kill(server, signal.SIGCONT)
    assert {delivery.outcome for delivery in deliveries} == {"held"}
    assert all("tmux could not be asked" in (delivery.reason or "") for delivery in deliveries)
    assert took < 2 * 15.0  # it is asked once, not by each in turn
    assert stage.messages() == []


def test_copy_mode_is_left_first(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    tmux("copy-mode", "-t", stage.address.pane_id)
    assert stage.send("hello").outcome == "submitted"
    assert tmux("display-message", "-p", "-t", stage.address.pane_id, "#{pane_in_mode}") == "0"


def test_two_senders_never_mix(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    texts = [letter * 3000 + "\n" + letter for letter in "abcd"]
    outcomes: list[tuple[str, str | None]] = []

    def send(text: str) -> None:
        delivery = stage.send(text)
        assert text.encode() in stage.messages()  # the event was about this one
        outcomes.append((delivery.outcome, delivery.source))

    senders = [threading.Thread(target=send, args=(text,)) for text in texts]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert outcomes == [("submitted", "event")] * 4
    assert sorted(stage.messages()) == [text.encode() for text in texts]


@pytest.mark.parametrize("letter", ["\x1b[201~", "\x00", "\r", "\x7f", "\x9b", "\x03"])
def test_control_characters_are_refused(tmp_path: Path, letter: str) -> None:
    stage = start_receiver(tmp_path)
    with pytest.raises(UsageError, match="control character"):
        stage.send(f"fine\nup to {letter} here")
    assert stage.messages() == []


def test_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no text"):
        deliver(None, "%0", " \n", lock=tmp_path / "lock", screen=RULES)


def test_a_dead_or_absent_pane_is_a_failure(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    pid = tmux("display-message", "-p", "-t", stage.address.pane_id, "#{pane_pid}")
    os.kill(int(pid), signal.SIGKILL)
    wait_until(
        lambda: tmux("display-message", "-p", "-t", stage.address.pane_id, "#{pane_dead}") == "1",
        what="the dead pane",
    )
    assert stage.send("x").outcome == "failed"
    tmux("kill-server")
    # as long as the server is on its way out it may not answer, which is no word about the pane
    wait_until(lambda: stage.send("x").outcome == "failed", what="the server to be gone")

"""Keys reach the program one by one, and only while it is the one that reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.errors import UsageError
from agent_farm.tmux.deliverable import Delivery
from agent_farm.tmux.keys import NAMED, parse_keys, press
from agent_farm.tmux.server import TmuxServer
from tests.tmux.stage import Stage, start_receiver, tmux
from tests.waiting import wait_until

BYTES = {
    "Tab": "09", "Up": "1b5b41", "Down": "1b5b42", "Right": "1b5b43", "Left": "1b5b44", "Space": "20",
    "BSpace": "7f", "C-c": "03", "Escape": "1b", ";": "3b", "-": "2d", "#": "23", "$": "24", "y": "79",
    "é": "c3a9",
}  # fmt: skip


def pressed(stage: Stage, keys: str, **more: int) -> Delivery:
    return press(stage.server.socket, stage.address.pane_id, parse_keys(keys), lock=stage.lock, **more)


@pytest.mark.parametrize("key", BYTES)
def test_each_key_is_the_one_a_person_presses(tmp_path: Path, key: str) -> None:
    stage = start_receiver(tmp_path)
    delivery = pressed(stage, f"{key} x Enter")
    assert (delivery.outcome, delivery.reason) == ("pressed", f"{key} x Enter")
    wait_until(stage.messages, what="what was submitted")
    assert stage.messages()[0].hex() == f"{BYTES[key]}78"


def test_every_named_key_is_looked_at() -> None:
    assert set(NAMED) <= {*BYTES, "Enter"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("enter", "Did you mean Enter?"),
        ("Esc", "Did you mean Escape?"),
        ("C-d", "C-c"),
        ("Enter;", "Enter?"),
        ("Enter rm", "Keys: "),
    ]
    + [(word, "Keys: ") for word in ("yes", "-l", "F12", "", "  ", "\x1b", "#{pane_id}", "M-x")],
)
def test_anything_else_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_keys(text)
    assert why in str(caught.value.why)


def test_copy_mode_is_left(tmp_path: Path) -> None:
    stage = start_receiver(tmp_path)
    tmux("copy-mode", "-t", stage.address.pane_id)
    assert pressed(stage, "y Enter").outcome == "pressed"
    wait_until(stage.messages, what="what was submitted")


def test_a_bare_shell_and_another_program_get_nothing(tmp_path: Path) -> None:
    server = TmuxServer()
    shell = server.start_session("af-rx-1", ("/bin/bash", "--norc"), cwd=tmp_path)
    held = press(server.socket, shell.pane_id, ("y",), lock=tmp_path / "lock")
    assert (held.outcome, held.reason) == ("held", "the pane shows a shell (bash)")
    held = press(server.socket, shell.pane_id, ("y",), lock=tmp_path / "lock", runtime_pid=1)
    assert (held.outcome, held.reason) == ("held", "the pane shows bash, not the runtime")
    assert press(server.socket, "%99", ("y",), lock=tmp_path / "lock").outcome == "held"


def test_a_program_that_ends_gets_no_further_key(tmp_path: Path) -> None:
    """The rest would be typed into the shell that it leaves."""
    server = TmuxServer()
    shell = server.start_session("af-rx-1", ("/bin/bash", "--norc"), cwd=tmp_path)
    tmux("send-keys", "-t", shell.pane_id, "cat", "Enter")
    wait_until(lambda: "cat" in tmux("display-message", "-p", "-t", shell.pane_id, "#{pane_current_command}"))
    done = press(server.socket, shell.pane_id, ("C-c", "y", "Enter"), lock=tmp_path / "lock")
    assert done.outcome == "failed"
    assert (done.reason or "").startswith("after C-c: the pane shows a shell")
    assert "y" not in server.capture(shell.pane_id).partition("^C")[2]

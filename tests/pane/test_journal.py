"""The journal of a run, whose directory belongs to the builder: nothing in it holds anybody up."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from agent_farm.pane import journal


def test_a_lock_that_is_never_let_go_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_LOCK_SECONDS", 0.1)
    events = tmp_path / "events.jsonl"
    with events.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        journal.record_event(str(tmp_path), {"event": "sent"})
    assert json.loads(events.read_text()) == {"event": "sent"}


def test_a_file_is_replaced_whatever_is_in_the_way(tmp_path: Path) -> None:
    """The name of the file beside it cannot be guessed: as a pipe it would never open, as a link it would be
    written through."""
    run = tmp_path / "run"
    run.mkdir()
    os.mkfifo(run / ".launch.json.tmp")
    journal.write_json(str(run), "launch.json", {"env": None})
    assert json.loads((run / "launch.json").read_text()) == {"env": None}
    assert {path.name for path in run.iterdir()} == {".launch.json.tmp", "launch.json"}

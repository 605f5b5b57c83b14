"""What `af wait` looks at while it waits."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.operations import wait


@pytest.mark.parametrize("name", ["events.jsonl", "exit.json", "registry.json"])
def test_a_file_that_changes_ends_a_pause(repo: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    farm = open_farm(repo)
    run = farm.run("one")
    run.directory.mkdir(parents=True)
    run.events.write_text("{}\n")
    monkeypatch.setattr(wait, "_ASK_SECONDS", 120.0)
    looked = wait._look(farm, ["one"])
    file = farm.paths.registry if name == "registry.json" else run.directory / name
    begun = time.monotonic()
    writer = threading.Timer(0.1, lambda: file.write_text("{}\n{}\n"))
    writer.start()
    wait._wait_for_change(farm, ["one"], looked, None)
    writer.join()
    assert file.exists()
    assert time.monotonic() - begun < 60


def test_a_pause_ends_by_itself_and_at_the_deadline(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    farm = open_farm(repo)
    looked = wait._look(farm, ["one"])
    begun = time.monotonic()
    wait._wait_for_change(farm, ["one"], looked, None)
    assert time.monotonic() - begun >= wait._ASK_SECONDS
    monkeypatch.setattr(wait, "_ASK_SECONDS", 120.0)
    wait._wait_for_change(farm, ["one"], looked, time.monotonic() + 0.1)
    assert time.monotonic() - begun < 60

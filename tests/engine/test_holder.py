"""The holder of a connection to a cluster, as a command meets it: no Ray is needed to be let down by it."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_farm.engine import held
from agent_farm.engine.held import HeldEngine
from agent_farm.engine.ray_files import run_directory
from agent_farm.errors import Overdue
from tests.engine.certificates import greeting
from tests.leftovers import processes_of


@pytest.fixture
def runtime(short: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = short / "holder"
    place.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    yield place
    shutil.rmtree(place)


@pytest.fixture
def head() -> Iterator[str]:
    """The address of one that greets as Ray's does, and says nothing more."""
    with greeting(None) as address:
        yield address


def test_who_is_in_a_hurry_waits_for_no_holder_that_hangs(runtime: Path, head: str) -> None:
    engine = HeldEngine(head)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(engine._socket))
        listening.listen()
        with pytest.raises(Overdue):
            engine.call("n1", b"{}", seconds=0.1)


def test_who_is_in_a_hurry_waits_for_no_holder_that_does_not_start(
    runtime: Path, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import time; time.sleep(600)' \"$@\"\n")
    program.chmod(0o755)
    monkeypatch.setattr(held, "require_ray", lambda: None)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(Overdue):
        HeldEngine(head).call("n1", b"{}", seconds=0.1)
    assert processes_of(run_directory()) == []

"""How programs are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_farm.launch import find_program


def _program(place: Path, mode: int = 0o755) -> str:
    place.parent.mkdir(exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(mode)
    return str(place)


def test_the_first_that_can_be_run(tmp_path: Path) -> None:
    _program(tmp_path / "a/claude", 0o644)
    (tmp_path / "b/claude").mkdir(parents=True)
    found = _program(tmp_path / "c/claude")
    path = os.pathsep.join(str(tmp_path / name) for name in "abc")

    assert find_program("claude", path) == found == find_program(found, "")
    assert find_program("codex", path) is None


@pytest.mark.parametrize("path", ["", ":", "/nowhere:", ":/nowhere"])
def test_nothing_is_found_where_somebody_happens_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A clone may have brought it along."""
    _program(tmp_path / "claude")
    monkeypatch.chdir(tmp_path)

    assert find_program("claude", path) is None

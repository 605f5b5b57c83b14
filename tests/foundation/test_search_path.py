"""How programs are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_farm.search_path import find_program


def _program(place: Path, mode: int = 0o755) -> str:
    place.parent.mkdir(exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(mode)
    return str(place)


def test_the_first_that_can_be_run(tmp_path: Path) -> None:
    _program(tmp_path / "a/af-test", 0o644)
    (tmp_path / "b/af-test").mkdir(parents=True)
    found = _program(tmp_path / "c/af-test")
    path = os.pathsep.join(str(tmp_path / name) for name in "abc")

    assert find_program("af-test", path) == found == find_program(found, "")
    assert find_program("af-other", path) is None


@pytest.mark.parametrize("path", ["", ":", "/nowhere:", ":/nowhere", ".", "bin:/nowhere"])
def test_nothing_is_found_where_somebody_happens_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A clone may have brought it along."""
    _program(tmp_path / "af-test")
    _program(tmp_path / "bin/af-test")
    monkeypatch.chdir(tmp_path)

    assert find_program("af-test", path) is None

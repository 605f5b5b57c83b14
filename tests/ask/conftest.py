from __future__ import annotations

from pathlib import Path

import pytest

from tests.ask.stage import Stage, make_stage


@pytest.fixture
def stage(tmp_path: Path, home: Path) -> Stage:
    return make_stage(tmp_path)


@pytest.fixture
def app(stage: Stage) -> Path:
    """A directory source `app`."""
    path = stage.directory("app")
    stage.sources.add("app", str(path))
    return path

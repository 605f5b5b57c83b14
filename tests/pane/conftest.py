from __future__ import annotations

from pathlib import Path

import pytest

from tests.pane.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)

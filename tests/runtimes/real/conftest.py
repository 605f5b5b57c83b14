from __future__ import annotations

import pytest

from tests.runtimes.real.clis import CLIS, RUNTIMES, Cli, require_clis


@pytest.fixture(params=RUNTIMES)
def cli(request: pytest.FixtureRequest) -> Cli:
    require_clis()
    return CLIS[request.param]

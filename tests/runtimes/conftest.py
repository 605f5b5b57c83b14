from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_api import FakeApi, fake_api
from tests.runtimes.subjects import HEADLESS, IN_A_PANE, Subject, make_subject


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    with fake_api() as running:
        running.run_directory = tmp_path / "run"
        yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The contract: every subject for each of its tests."""
    contracts = {"test_contract_interactive": IN_A_PANE, "test_contract_headless": HEADLESS}
    subjects = contracts.get(metafunc.module.__name__.rpartition(".")[2])
    if subjects and "subject" in metafunc.fixturenames:
        metafunc.parametrize("subject", subjects, indirect=True)


@pytest.fixture
def subject(request: pytest.FixtureRequest, repo: Path, tmp_path: Path, api: FakeApi) -> Iterator[Subject]:
    made = make_subject(request.param, tmp_path, repo, api)
    yield made
    for process in made.left_processes():
        process.kill()

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_api import FakeApi
from tests.gitrepo import git, make_repo, write_files
from tests.runtimes.real.clis import CLIS, RUNTIMES, Cli, project_with_decoys, require_clis, write_user_decoys


@pytest.fixture(params=RUNTIMES)
def cli(request: pytest.FixtureRequest) -> Cli:
    require_clis()
    return CLIS[request.param]


@pytest.fixture
def worktree(tmp_path: Path, home: Path, api: FakeApi) -> Path:
    """A linked worktree, with decoys in it and in the home directory."""
    write_user_decoys(home, api)
    root = make_repo(tmp_path / "repo")
    write_files(root, project_with_decoys(root, api))
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "decoys")
    place = tmp_path / "trees" / "one"
    git(root, "worktree", "add", "-q", "-b", "builder/one", str(place))
    return place

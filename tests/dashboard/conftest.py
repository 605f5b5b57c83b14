"""A browser and a dashboard for tests: Debian's Chromium, driven by Playwright, and nothing from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_farm.disk import file_lock
from tests.conftest import Af
from tests.dashboard.browser import ARGUMENTS, Visit, visiting
from tests.dashboard.stage import Dashboard, serving
from tests.gitrepo import commit_files

HERE = Path(__file__).parent
TOP = HERE.parents[1]
AXE = HERE / "node_modules/axe-core/axe.min.js"

FILES = {
    "README.md": "# shop\n",
    "src/auth.py": "def login() -> None:\n    ...\n",
    "codev/specs/README.md": "# Specs\n",
    "codev/specs/0009-terminal-click.md": "# Terminal click\n",
    "codev/plans/0009-terminal-click.md": "# Plan\n",
    "codev/specs/0012-csv-export.md": "# CSV export\n",
    "codev/protocols/cleanup/protocol.md": "# Cleanup\n",
    "codev/protocols/experiment/protocol.md": "# Experiment\n",
    "codev/roles/builder.md": "# Builder\n",
}


@pytest.fixture(scope="session", autouse=True)
def _vendored() -> None:
    """xterm.js and axe-core from npm, each in a place of its own."""
    # Several workers may come at once.
    with file_lock(Path(tempfile.gettempdir()) / "af-dashboard-tests.lock"):
        _fetch()


def _fetch() -> None:
    if not (TOP / "agent_farm/server/page/vendor/xterm.mjs").exists():
        subprocess.run([sys.executable, TOP / "tools/vendor_xterm.py"], check=True, timeout=300)
    if not AXE.exists():
        argv = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(argv, cwd=HERE, check=True, timeout=300)


@pytest.fixture
def shop(repo: Path) -> Path:
    """A farm with specs, protocols and a role to spawn from."""
    commit_files(repo, FILES, "shop")
    return repo


@pytest.fixture
def dashboard(shop: Path) -> Iterator[Dashboard]:
    with serving(shop) as running:
        yield running


@pytest.fixture
def visit(dashboard: Dashboard, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    """`visit(width=360, …)` is a logged-in page; a test fails when any of its pages said an error."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")
    with tempfile.TemporaryDirectory(prefix="af-chr-", dir="/tmp") as short, sync_playwright() as playwright:
        # Chromium makes a socket in TMPDIR, and a socket's path has to be short.
        env = {**os.environ, "HOME": str(tmp_path), "TMPDIR": short}
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS, env=env)
        visits: list[Visit] = []

        def make(**options: object) -> Visit:
            visits.append(visiting(browser, dashboard, **options))
            return visits[-1]

        try:
            yield make
        finally:
            browser.close()
        for one in visits:
            assert one.errors == [], one.errors


@pytest.fixture
def spawn(shop: Path, af: Af) -> Callable[..., str]:
    """A demo builder, by the real command line; its id."""

    def run(*args: str) -> str:
        done = af("spawn", "--runtime", "demo", *args)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run

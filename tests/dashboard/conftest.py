"""A browser and a dashboard for tests: Debian's Chromium, driven by Playwright, and nothing from outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_farm.disk import file_lock
from agent_farm.pane.journal import record_event
from agent_farm.paths import FarmPaths
from tests.conftest import Af, private_home
from tests.dashboard.browser import ARGUMENTS, Visit, visiting
from tests.dashboard.stage import FIRST, Dashboard, clear
from tests.gitrepo import git, make_repo

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
        argv = [
            "npm",
            "install",
            "--no-package-lock",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ]
        subprocess.run(argv, cwd=HERE, check=True, timeout=300)


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, short: Path) -> Iterator[Path]:
    """One home, one farm, one server and one browser for all tests of a module."""
    with private_home(tmp_path_factory.mktemp("farm"), short) as private:
        yield private


@pytest.fixture(scope="module")
def shop(home: Path) -> Path:
    """A farm with specs, protocols and a role to spawn from."""
    root = make_repo(home.parent / "repo", FILES)
    git(root, "update-ref", FIRST, "HEAD")
    return root


@pytest.fixture
def repo(shop: Path) -> Path:
    return shop


@pytest.fixture(autouse=True)
def _cleared(request: pytest.FixtureRequest, home: Path) -> Iterator[None]:
    """No test sees the builders and sessions of the one before it."""
    used = {"shop", "repo"} & set(request.fixturenames)
    root = request.getfixturevalue("shop") if used else None
    yield
    if root:
        clear(root, home)


@pytest.fixture(scope="module")
def server(shop: Path) -> Iterator[Dashboard]:
    running = Dashboard(shop)
    running.start()
    yield running
    running.end()


@pytest.fixture
def dashboard(server: Dashboard) -> Dashboard:
    server.require()
    return server


@pytest.fixture(scope="module")
def chromium(home: Path, short: Path) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")
    with tempfile.TemporaryDirectory(dir=short) as own, sync_playwright() as playwright:
        # Chromium makes a socket in TMPDIR.
        env = {**os.environ, "TMPDIR": own}
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, env=env)
        yield browser
        browser.close()


@pytest.fixture
def visit(dashboard: Dashboard, chromium: Browser) -> Iterator[Callable[..., Visit]]:
    """`visit(width=360, …)` is a logged-in page; a test fails when any of its pages said an error."""
    visits: list[Visit] = []

    def make(**options: Any) -> Visit:
        visits.append(visiting(chromium, dashboard, **options))
        return visits[-1]

    yield make
    for one in visits:
        one.page.context.close()
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


@pytest.fixture
def idle(spawn: Callable[..., str], af: Af) -> str:
    """A builder whose turn has ended."""
    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    return id


@pytest.fixture
def session(shop: Path, idle: str) -> str:
    return FarmPaths(shop).session(idle)


def report(root: Path, id: str, state: str, reason: str | None) -> None:
    """As a hook does it."""
    run = root / ".agent-farm/runs" / id
    known = json.loads((run / "record.json").read_text())["run"]
    event = {"at": time.time(), "run": known, "source": "hook", "event": "Notification"}
    record_event(str(run), event | {"state": state, "reason": reason})

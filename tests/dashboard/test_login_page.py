"""The ticket reaches the browser without ever being on a command line, which every user can read."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.stage import Dashboard
from tests.dashboard.test_farm_server import log_in
from tests.waiting import wait_until

# What everybody can see of it and of all others, and what it alone is shown.
BROWSER = """#!{python}
import json, pathlib, sys
lines = []
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        lines.append((entry / "cmdline").read_bytes().decode(errors="replace"))
    except OSError:
        pass
seen = {{"argv": sys.argv[1:], "command_lines": lines}}
done = pathlib.Path({seen!r})
done.with_suffix(".tmp").write_text(json.dumps(seen))
done.with_suffix(".tmp").rename(done)
"""


@pytest.fixture
def browser(tmp_path: Path) -> Path:
    """A program that stands in for a browser; what it saw is in `seen.json` beside it."""
    program = tmp_path / "browser"
    program.write_text(BROWSER.format(python=sys.executable, seen=str(tmp_path / "seen.json")))
    program.chmod(0o755)
    return program


def test_no_command_line_holds_the_ticket(shop: Path, af: Af, browser: Path) -> None:
    private = shop / ".agent-farm/dashboard-login"
    try:
        done = af("dash", env={"BROWSER": str(browser)})
        assert done.returncode == 0, done.stderr
        address = urlsplit(done.stdout.strip())
        ticket = address.fragment
        seen_file = browser.with_name("seen.json")
        wait_until(seen_file.exists, timeout=60, what="the browser to be started")
        seen = json.loads(seen_file.read_text())
        assert len(ticket) == 64
        assert not any(ticket in line for line in seen["command_lines"])
        (argument,) = seen["argv"]
        page = Path(url2pathname(urlsplit(argument).path))
        assert (urlsplit(argument).scheme, page.parent) == ("file", private)
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert f'content="0; url={address.geturl()}"' in page.read_text()

        log_in(address.geturl())
        assert not page.exists()
    finally:
        af("butler", "stop", "--now")


def test_without_a_browser_no_page_is_written(shop: Path, af: Af) -> None:
    try:
        for option in ("--no-browser", "--print", "--json"):
            assert af("dash", option).returncode == 0
        assert list((shop / ".agent-farm/dashboard-login").glob("*")) == []
    finally:
        af("butler", "stop", "--now")


def test_the_page_leads_into_the_dashboard_once(dashboard: Dashboard, visit: Callable[..., Visit]) -> None:
    one = visit(log_in=False)
    page = Path(dashboard.post("/api/tickets", {"page": True})["page"])
    text = page.read_text()
    one.page.goto(page.as_uri())
    one.page.wait_for_selector("#connection[data-state=live]")
    assert one.page.url.startswith(f"{dashboard.address}/")
    assert not page.exists()

    page.write_text(text)  # whoever kept it
    again = visit(log_in=False)
    again.expect("401")
    again.page.goto(page.as_uri())
    again.page.get_by_text("This address is used up or too old").wait_for()


def test_what_an_earlier_server_left_is_removed(dashboard: Dashboard) -> None:
    page = Path(dashboard.post("/api/tickets", {"page": True})["page"])
    assert page.exists()
    dashboard.end()
    dashboard.start()
    assert not page.exists()

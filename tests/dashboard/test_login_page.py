"""How a browser is let in: no command line holds the ticket, and no other port is shown the login."""

from __future__ import annotations

import json
import shutil
import socket
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.stage import Dashboard, listening_at
from tests.dashboard.test_farm_server import log_in
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

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
    again.page.get_by_text("This address has been used or is too old").wait_for()


def test_what_an_earlier_server_left_is_removed(dashboard: Dashboard) -> None:
    page = Path(dashboard.post("/api/tickets", {"page": True})["page"])
    assert page.exists()
    dashboard.end()
    dashboard.start()
    assert not page.exists()


def test_a_link_in_the_place_of_its_directory_leads_nowhere(dashboard: Dashboard, shop: Path) -> None:
    elsewhere = shop.parent / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (elsewhere / "mine.html").write_text("mine")
    pages = shop / ".agent-farm/dashboard-login"
    dashboard.end()
    dashboard.start()
    shutil.rmtree(pages, ignore_errors=True)
    pages.symlink_to(elsewhere)
    answer = dashboard.ask("POST", "/api/tickets", {"page": True})
    pages.unlink()
    assert (answer.status, answer.json["error"]["code"]) == (409, "foreign-file")
    assert [file.name for file in elsewhere.iterdir()] == ["mine.html"]
    assert elsewhere.stat().st_mode & 0o777 == 0o755


class Neighbour(BaseHTTPRequestHandler):
    """Any other server of this machine: a builder's dev server, another user's tunnel."""

    heard: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        Neighbour.heard.append(f"{self.path}\n{self.headers}")
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>neighbour</title>")

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_another_port_of_this_machine_is_shown_nothing_that_logs_in(
    dashboard: Dashboard, visit: Callable[..., Visit], shop: Path
) -> None:
    one = visit()
    logins = json.loads((shop / ".agent-farm/dashboard-logins.json").read_text())["logins"]
    login = one.page.evaluate("localStorage.getItem('agent-farm.login')")
    assert sha256(login.encode()).hexdigest() in logins
    with ThreadingHTTPServer(("127.0.0.1", 0), Neighbour) as neighbour:
        thread = threading.Thread(target=neighbour.serve_forever, daemon=True)
        thread.start()
        try:
            for name in ("localhost", "127.0.0.1", f"{shop.name}.localhost"):
                other = one.page.context.new_page()
                other.goto(f"http://{name}:{neighbour.server_address[1]}/{name}")
                assert other.evaluate("JSON.stringify([document.cookie, {...localStorage}])") == '["",{}]'
                # A frame of the dashboard, or a link to it, tells it nothing either.
                framed = other.evaluate(
                    "address => fetch(address, {credentials: 'include'}).then(() => 'read', () => 'refused')",
                    f"{dashboard.address}/api/status",
                )
                assert framed == "refused"
                other.close()
        finally:
            neighbour.shutdown()
    assert len([heard for heard in Neighbour.heard if "localhost" in heard or "127.0.0.1" in heard]) >= 3
    assert not [heard for heard in Neighbour.heard if login in heard or "cookie:" in heard.lower()]


def test_a_new_tab_is_logged_in_as_well(dashboard: Dashboard, visit: Callable[..., Visit]) -> None:
    one = visit()
    tab = one.page.context.new_page()
    tab.goto(f"{dashboard.address}/")
    tab.wait_for_selector("#connection[data-state=live]")


def test_who_takes_the_port_is_shown_no_login(dashboard: Dashboard, visit: Callable[..., Visit]) -> None:
    """Pages that are still open ask who answers before they come again."""
    one = visit()
    one.expect("ERR_CONNECTION")
    one.expect("Failed to load resource")
    one.expect("WebSocket")
    login = one.page.evaluate("localStorage.getItem('agent-farm.login')")
    heard: list[bytes] = []
    over = threading.Event()

    def impostor(at: socket.socket) -> None:
        at.settimeout(0.2)
        while not over.is_set():
            with suppress(OSError):
                connection, _ = at.accept()
                connection.settimeout(2)
                with connection:
                    heard.append(connection.recv(65536))
                    body = b'{"logged_in": true, "proof": "00"}'
                    connection.sendall(
                        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
                    )
                    connection.sendall(body)

    dashboard.end()
    with listening_at(dashboard.port) as at:
        thread = threading.Thread(target=impostor, args=(at,))
        thread.start()
        try:
            one.page.wait_for_url("**/login", timeout=60000, wait_until="commit")
            asked = lambda: any(b"GET /login" in each for each in heard)  # noqa: E731
            wait_until(asked, timeout=60, what="the page to leave")
        finally:
            over.set()
            thread.join()
    assert any(b"/api/session?login=" in each for each in heard)
    assert not [each for each in heard if login.encode() in each]

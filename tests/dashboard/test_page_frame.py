"""What holds on every view of the page: keys, who waits, one stream of events, and no late answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.conftest import report
from tests.dashboard.stage import Dashboard
from tests.dashboard.test_terminal import opened
from tests.waiting import wait_until

Spawn = Callable[..., str]
Open = Callable[..., Visit]


def test_what_is_typed_after_n_is_the_task(visit: Open, dashboard: Dashboard) -> None:
    one = visit()
    one.page.keyboard.press("n")
    one.page.keyboard.type("Find bugs, stop when done [[say:so]]")
    assert one.page.input_value("#spawn-task") == "Find bugs, stop when done [[say:so]]"
    assert one.page.url.endswith("#/spawn")
    one.page.wait_for_selector("#spawn-runtime option[value=demo]", state="attached")
    one.page.select_option("#spawn-runtime", "demo")
    one.page.focus("#spawn-task")
    one.page.keyboard.press("Control+Enter")
    one.page.wait_for_selector(".builder-head", timeout=60000)
    assert len(dashboard.get("/api/status")["builders"]) == 1


def test_keys_of_one_letter_can_be_switched_off(visit: Open) -> None:
    one = visit()
    one.page.keyboard.press("?")
    one.page.uncheck("#single-keys")
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("n")
    one.page.keyboard.press("s")
    assert one.page.url == f"{one.dashboard.address}/"
    one.page.click("#help")
    one.page.check("#single-keys")
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("s")
    one.page.wait_for_selector("h1:text-is('Sessions')")


def test_who_waits_is_said_on_every_view(shop: Path, spawn: Spawn, idle: str, af: Af, visit: Open) -> None:
    other = spawn("--shell")
    assert af("wait", other, "--timeout", "300").returncode == 0
    one = visit(permissions=["notifications"])
    one.page.add_init_script(
        "window.told = []; window.Notification = class { static permission = 'granted';"
        " static requestPermission() { return Promise.resolve('granted'); }"
        " constructor(title, options) { window.told.push([title, options.body]); } addEventListener() {} };"
    )
    one.page.reload()
    nobody, somebody = (rf"{sign}(shell · )?repo — agent-farm" for sign in ("", r"\(1\) "))
    for number, view in enumerate((f"builder/{idle}", "sessions", "removed", "spawn"), 1):
        one.open(view)
        one.page.wait_for_selector("#connection[data-state=live]")
        report(shop, other, "working", None)
        wait_until(lambda: re.fullmatch(nobody, one.page.title()), what="nobody to wait")
        if number == 2:
            one.page.click("#notify")
        report(shop, other, "waiting", f"question {number}")
        wait_until(lambda: re.fullmatch(somebody, one.page.title()), what="the title")
        assert one.page.inner_text("#needing") == "1"
        one.page.wait_for_selector(f".toast >> text=question {number}")
    told = one.page.evaluate("window.told")
    assert [body for _, body in told] == ["question 2", "question 3", "question 4"]
    assert told[0][0].startswith("repo: ")


def test_titles_tell_builders_apart_and_back_goes_back(spawn: Spawn, visit: Open) -> None:
    ids = [
        spawn("--protocol", "experiment", "--args", f'{{"hypothesis": "{word}"}}')
        for word in ("Redis", "Rust")
    ]
    one = visit()
    for id, word in zip(ids, ("Redis", "Rust"), strict=True):
        one.open(f"builder/{id}/prompt")
        wait_until(lambda word=word: word in one.page.title(), timeout=60, what="its title")
    one.page.go_back()
    wait_until(lambda: "Redis" in one.page.title(), timeout=60, what="the one before")
    assert one.page.get_attribute("#tab-prompt", "aria-selected") == "true"
    one.page.go_forward()
    wait_until(lambda: "Rust" in one.page.title(), timeout=60, what="the other one")
    one.page.keyboard.press("b")
    wait_until(lambda: one.page.title() == "repo — agent-farm", timeout=60, what="the board's title")


def test_late_answers_stay_out_of_other_views(idle: str, visit: Open) -> None:
    from playwright.sync_api import Error

    one = opened(visit(), idle)
    one.expect("404")
    held: list[Any] = []
    one.page.route("**/api/prompt?*", lambda route: held.append(route))
    one.page.route("**/api/sessions_get?session_id=doesnotexist", lambda route: held.append(route))
    with one.page.expect_request("**/api/prompt?*", timeout=60000):
        one.page.click("#tab-prompt")
    one.page.click("#tab-terminal")
    with one.page.expect_request("**/api/sessions_get?session_id=doesnotexist", timeout=60000):
        one.open("session/doesnotexist")
    one.open("")
    one.page.wait_for_selector(f'[data-id="{idle}"]')
    for route in held:
        with suppress(Error):  # the page asks no more
            route.continue_()
    assert one.page.evaluate("import('/static/js/api.js').then(api => api.read('status'))")["builders"]
    assert one.page.locator(f'.rows [data-id="{idle}"]').count() == 1
    assert "No session" not in one.page.inner_text("main")


def test_many_tabs_are_live_over_one_connection(shop: Path, idle: str, visit: Open) -> None:
    """A browser has six connections of HTTP to a host; tabs that listen take none of them."""
    one = visit()
    tabs = [one.page.context.new_page() for _ in range(19)]
    for tab in tabs:
        tab.goto(f"{one.dashboard.address}/")
    for tab in tabs:
        tab.wait_for_selector(f'.rows [data-id="{idle}"]', timeout=60000)
    assert one.page.evaluate("import('/static/js/api.js').then(api => api.read('status'))")["builders"]
    server = psutil.Process(one.dashboard.pid)
    open_now = [each for each in server.net_connections() if each.status == psutil.CONN_ESTABLISHED]
    assert len(open_now) < len(tabs)
    one.page.close()  # which the stream was begun for
    report(shop, idle, "waiting", "who is left?")
    for tab in tabs:
        tab.wait_for_selector(f'[data-id="{idle}"][data-state=waiting]', timeout=60000)

"""What the page says is so on every view: one terminal, names as they are, and who waits, wherever one is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_farm.dashboard.builder_reads import count_changes
from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.stage import Dashboard
from tests.dashboard.test_board import report
from tests.dashboard.test_builder_view import clients, opened, screen_of, tmux
from tests.gitrepo import git
from tests.waiting import wait_until

Spawn = Callable[..., str]
Open = Callable[..., Visit]


@pytest.fixture
def idle(spawn: Spawn, af: Af) -> str:
    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    return id


@pytest.fixture
def session(shop: Path, idle: str) -> str:
    from agent_farm.paths import FarmPaths

    return FarmPaths(shop).session(idle)


def test_a_fresh_tab_has_one_terminal(spawn: Spawn, af: Af, visit: Open) -> None:
    """Its module is still on the way while the builder goes from creating to idle."""
    one = visit()
    held: list[Any] = []
    one.page.route("**/vendor/xterm.mjs", lambda route: held.append(route))
    id = spawn("Say it [[say:so]]")
    with one.page.expect_request("**/vendor/xterm.mjs", timeout=60000):
        one.open(f"builder/{id}")
    one.page.wait_for_selector(".builder-head [data-state=idle]", timeout=60000)
    assert af("stop", id).returncode == 0
    one.page.wait_for_selector(".builder-head [data-state=stopped]", timeout=60000)
    assert af("resume", id).returncode == 0
    one.page.wait_for_selector(".builder-head [data-state=idle]", timeout=60000)
    for route in held:
        route.continue_()
    one.page.wait_for_selector("text=watching", timeout=60000)
    assert one.page.locator("#terminal .holder").count() == 1
    assert one.page.inner_text(".terminal-bar .says") == "watching"


def test_a_glance_from_a_phone_leaves_the_size_as_it_was(idle: str, session: str, visit: Open) -> None:
    def size() -> str:
        return tmux("display-message", "-p", "-t", f"={session}:", "#{window_width}x#{window_height}")

    before = size()
    phone, other = opened(visit(width=390, height=740), idle), opened(visit(width=390, height=740), idle)
    wait_until(lambda: size() != before, timeout=60, what="the pane to become narrow")
    narrow = size()
    other.page.close()
    wait_until(lambda: len(clients()) == 1, timeout=60, what="one of them to leave")
    assert size() == narrow  # somebody still looks
    phone.page.close()
    wait_until(lambda: size() == before, timeout=60, what="the size to be given back")
    again = opened(visit(width=390, height=740), idle)
    wait_until(lambda: size() != before, timeout=60, what="the next one to set the size again")
    again.page.close()


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
    assert len(dashboard.get("/api/builders?git=false")["builders"]) == 1


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


def test_copying_and_pasting_in_the_terminal(idle: str, session: str, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    clipboard = "navigator.clipboard.readText()"
    for keys in ("Control+c", "Control+Shift+c"):
        one.page.evaluate("navigator.clipboard.writeText('')")
        one.page.locator("#terminal .xterm-rows > div", has_text="demo").first.click(
            click_count=3, force=True
        )
        one.page.keyboard.press(keys)
        wait_until(lambda: "demo" in one.page.evaluate(clipboard), timeout=60, what=f"{keys} to copy")
    one.page.click("#typing")
    one.page.wait_for_selector("text=keys go to the builder")
    one.page.evaluate("navigator.clipboard.writeText('from elsewhere')")
    one.page.keyboard.press("Control+v")
    wait_until(lambda: "from elsewhere" in screen_of(session), timeout=60, what="the paste")


def test_files_are_named_as_they_are_and_once(shop: Path, idle: str, visit: Open) -> None:
    worktree = shop / ".builders" / idle
    for name in ("notes-ü.txt", 'a "quoted"\tname.txt'):
        (worktree / name).write_text("x\n")
    (worktree / "logo of b.png").write_bytes(b"\x89PNG\0\0")
    one = visit()
    one.open(f"builder/{idle}/diff")
    one.page.wait_for_selector("details.file")
    shown = one.page.locator("details.file .name").all_inner_texts()
    assert sorted(shown) == sorted(["notes-ü.txt", 'a "quoted"\u2409name.txt', "logo of b.png"])
    assert "new, binary" in one.page.locator("details.file .kind").all_inner_texts()


def test_a_diff_that_is_cut_off_is_counted_whole(shop: Path, idle: str, dashboard: Dashboard) -> None:
    (shop / ".builders" / idle / "long.txt").write_text("a line of thirty characters .\n" * 80_000)
    answer = dashboard.get(f"/api/builders/{idle}/diff")
    assert (answer["truncated"], answer["files"], answer["added"]) == (True, 1, 80_000)
    assert answer["diff"].endswith("\n")
    text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n--- a/y\n+++ b/y\n+\n diff --git\n"
    assert count_changes(text) == {"files": 1, "added": 2, "deleted": 1}


def test_landed_work_is_called_landed(shop: Path, idle: str, af: Af, visit: Open) -> None:
    one = visit()
    badges = f'[data-id="{idle}"] .git'
    one.page.wait_for_selector(f"{badges} >> text=clean", timeout=60000)  # no commit of its own, so nothing
    worktree = shop / ".builders" / idle
    (worktree / "new.txt").write_text("x\n")
    git(worktree, "add", "new.txt")
    git(worktree, "commit", "-m", "New")
    done = af("merge", idle, "--strategy", "merge")
    assert done.returncode == 0, done.stderr
    report(shop, idle, "idle", None)
    one.page.wait_for_selector(f"{badges} .landed", timeout=60000)


def test_a_draft_is_kept(idle: str, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.fill("#message", "not sent yet")
    one.open("sessions")
    one.page.wait_for_selector("h1:text-is('Sessions')")
    one.open(f"builder/{idle}")
    one.page.wait_for_selector("#message")
    assert one.page.input_value("#message") == "not sent yet"


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
    for number, view in enumerate((f"builder/{idle}", "sessions", "removed", "spawn"), 1):
        one.open(view)
        one.page.wait_for_selector("#connection[data-state=live]")
        report(shop, other, "working", None)
        wait_until(lambda: one.page.title() == "repo — agent-farm", timeout=60, what="nobody to wait")
        if number == 2:
            one.page.click("#notify")
        report(shop, other, "waiting", f"question {number}")
        wait_until(lambda: one.page.title() == "(1) repo — agent-farm", timeout=60, what="the title")
        assert one.page.inner_text("#needing") == "1"
        one.page.wait_for_selector(f".toast >> text=question {number}")
    told = one.page.evaluate("window.told")
    assert [body for _, body in told] == ["question 2", "question 3", "question 4"]
    assert told[0][0].startswith("repo: ")


def test_failed_builders_are_among_those_that_need_a_person(shop: Path, spawn: Spawn, visit: Open) -> None:
    id = spawn("[[crash]]")
    page = visit().page
    page.wait_for_selector(f'.needs [data-need="{id}"]', timeout=60000)
    assert "failed" in page.inner_text(".needs")


def test_late_answers_stay_out_of_other_views(idle: str, visit: Open) -> None:
    from playwright.sync_api import Error

    one = opened(visit(), idle)
    one.expect("404")
    held: list[Any] = []
    one.page.route("**/api/prompt?*", lambda route: held.append(route))
    one.page.route("**/api/sessions/doesnotexist", lambda route: held.append(route))
    with one.page.expect_request("**/api/prompt?*", timeout=60000):
        one.page.click("#tab-prompt")
    one.page.click("#tab-terminal")
    with one.page.expect_request("**/api/sessions/doesnotexist", timeout=60000):
        one.open("session/doesnotexist")
    one.open("")
    one.page.wait_for_selector(f'[data-id="{idle}"]')
    for route in held:
        with suppress(Error):  # the page asks no more
            route.continue_()
    assert one.page.evaluate("import('/static/js/api.js').then(api => api.get('/api/farm'))")["farm"]
    assert one.page.locator(f'.rows [data-id="{idle}"]').count() == 1
    assert "No session" not in one.page.inner_text("main")


def test_many_tabs_are_live_over_one_connection(shop: Path, idle: str, visit: Open) -> None:
    """A browser has six connections of HTTP to a host; tabs that listen take none of them."""
    one = visit()
    tabs = [one.page.context.new_page() for _ in range(12)]
    for tab in tabs:
        tab.goto(f"{one.dashboard.address}/")
    for tab in tabs:
        tab.wait_for_selector(f'.rows [data-id="{idle}"]', timeout=60000)
    assert one.page.evaluate("import('/static/js/api.js').then(api => api.get('/api/farm'))")["farm"]
    server = psutil.Process(one.dashboard.pid)
    open_now = [each for each in server.net_connections() if each.status == psutil.CONN_ESTABLISHED]
    assert len(open_now) < len(tabs)
    one.page.close()  # which the stream was begun for
    report(shop, idle, "waiting", "who is left?")
    for tab in tabs:
        tab.wait_for_selector(f'[data-id="{idle}"][data-state=waiting]', timeout=60000)


def test_resuming_can_agree(shop: Path, idle: str, af: Af, visit: Open) -> None:
    assert af("stop", idle).returncode == 0
    (shop / "agent-farm.toml").write_text('[notify]\ncommand = "true said"\n')
    one = visit()
    one.expect("409")
    one.open(f"builder/{idle}")
    one.page.click("[data-action=resume]")
    one.page.wait_for_selector("dialog >> text=true said")
    one.page.click("text=Agree and resume")
    one.page.wait_for_selector(".builder-head [data-state=idle]", timeout=60000)


def test_the_merge_dialog_says_what_lands_where(shop: Path, idle: str, visit: Open) -> None:
    worktree = shop / ".builders" / idle
    (worktree / "new.txt").write_text("x\n")
    git(worktree, "add", "new.txt")
    git(worktree, "commit", "-m", "A new file")
    (worktree / "left.txt").write_text("x\n")
    one = visit()
    one.open(f"builder/{idle}")
    one.page.click("[data-action=merge]")
    one.page.wait_for_selector("dialog >> text=A new file")
    said = one.page.inner_text("dialog")
    assert "on main," in said
    assert "Not committed, so it does not land (1)" in said
    assert "left.txt" in said


def test_a_session_is_stopped_and_gone_on_with(visit: Open, dashboard: Dashboard) -> None:
    def start(prompt: str) -> str:
        return str(dashboard.post("/api/sessions", {"prompt": prompt, "runtime": "demo"})["session_id"])

    one = visit()
    one.open(f"session/{start('[[sleep:600]]')}")
    one.page.click("[data-action=stop]", timeout=60000)
    one.page.wait_for_selector(".builder-head [data-state=cancelled]", timeout=60000)
    first = start("[[say:the first words]]")
    one.open(f"session/{first}")
    one.page.wait_for_selector(".builder-head [data-state=completed]", timeout=60000)
    one.page.fill("textarea", "[[say:the second words]]")
    one.page.click("button:text-is('Go on')")
    one.page.wait_for_function(
        "first => !location.hash.includes(first) || document.querySelector('form .error')", arg=first
    )
    assert first not in one.page.url, one.page.inner_text("main")
    one.page.wait_for_selector(".builder-head [data-state=completed]", timeout=60000)
    assert "the second words" in one.page.inner_text("main")


def test_a_schedule_is_run_at_once_as_itself(visit: Open, dashboard: Dashboard, af: Af) -> None:
    assert af("config", "set", "spawn.runtime", "demo").returncode == 0
    done = af("schedule", "add", "digest", "0 8 * * 1-5", "[[say:digested]]")
    assert done.returncode == 0, done.stderr
    one = visit()
    one.open("sessions")
    one.page.click("[aria-label='Run now digest']", timeout=60000)
    one.page.wait_for_selector("td >> text=schedule:digest", timeout=60000)
    (session,) = dashboard.get("/api/sessions")["sessions"]
    assert session["trigger_source"] == "schedule:digest"

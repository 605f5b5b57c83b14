"""Builders on another machine on the page, in a real browser."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.dashboard.browser import ARGUMENTS, Visit, visiting
from tests.dashboard.stage import Dashboard
from tests.dashboard.test_terminal import terminal_text
from tests.fleet.machines import Node
from tests.fleet.test_checkpoints import worktree
from tests.fleet.test_fleet import ok, spawned
from tests.gitrepo import commit_files
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def page(big: Node, repo: Path, short: Path) -> Iterator[Visit]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    running = Dashboard(repo)
    running.start()
    with tempfile.TemporaryDirectory(dir=short) as own, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, env={"TMPDIR": own})
        visit = visiting(browser, running)
        yield visit
        assert visit.errors == []
        browser.close()
    running.end()


def clients(node: Node) -> list[str]:
    return node.run("tmux", "list-clients", "-F", "#{client_readonly}").split()


def test_a_builder_there_is_watched_typed_into_and_acted_on(af: Af, big: Node, page: Visit) -> None:
    id = spawned(af, "Fix the login")
    page.page.wait_for_selector(f'[data-id="{id}"] >> text=on big')
    ok(af, "wait", id, "--timeout", "120")
    page.page.wait_for_selector(f'[data-id="{id}"][data-state=idle]')
    page.open(f"builder/{id}")
    page.page.wait_for_selector("#terminal .xterm-rows")
    wait_until(lambda: "demo>" in terminal_text(page), what="its screen")
    assert clients(big) == ["1"]
    page.page.click("#typing")
    page.page.wait_for_selector("text=keys go to the builder")
    wait_until(lambda: clients(big) == ["0"], what="a client that types")
    page.page.keyboard.type("[[say:hello from the browser]]")
    page.page.keyboard.press("Enter")
    wait_until(lambda: "answer: hello from the browser" in terminal_text(page), what="the answer")
    page.page.click("#tab-diff")
    page.page.wait_for_selector("text=demo-")
    assert clients(big) == []
    page.page.fill("#message", "And now the logout")
    page.page.press("#message", "Enter")
    page.page.wait_for_selector("output[data-outcome=submitted]")
    page.page.click("[data-action=stop]")
    page.page.wait_for_selector("[data-action=resume]")
    page.page.click("[data-action=prune]")
    page.expect("409")
    page.page.wait_for_selector("text=has not landed")


def test_the_spawn_form_offers_the_machines_of_the_fleet(af: Af, big: Node, page: Visit) -> None:
    page.open("spawn")
    page.page.wait_for_selector("#spawn-on", state="attached")
    page.page.fill("#spawn-task", "[[say:done]]")
    page.page.select_option("#spawn-runtime", "demo")
    page.page.click("details.more summary")
    assert page.page.locator("#spawn-on option").all_text_contents()[1:] == ["local", "fleet", "big"]
    page.page.select_option("#spawn-on", "big")
    page.page.click("button[type=submit]")
    page.page.wait_for_selector(".builder-head >> text=on big", timeout=60000)
    ok(af, "fleet", "drain", "big")
    page.page.keyboard.press("Escape")
    page.page.reload()
    page.open("spawn")
    page.page.wait_for_selector("#spawn-on", state="attached")
    assert page.page.locator("#spawn-on option").all_text_contents()[1:] == ["local", "fleet"]


def test_a_machine_that_hangs_does_not_hold_up_the_page(af: Af, big: Node, page: Visit) -> None:
    there = spawned(af, "Fix the login")
    ok(af, "wait", there, "--timeout", "120")
    here = ok(af, "spawn", "--runtime", "demo", "[[say:I am here]]").strip()
    ok(af, "wait", here, "--timeout", "120")
    page.page.wait_for_selector(f'[data-id="{there}"][data-state=idle]')
    big.hang()
    ask = partial(page.dashboard.ask, "GET", f"/api/capture?id={there}")
    asking = [
        threading.Thread(target=ask) for _ in range(12)
    ]  # more than there are threads for a kind of verb
    for one in asking:
        one.start()
    assert page.dashboard.ask("GET", f"/api/capture?id={here}").status == 200
    assert all(one.is_alive() for one in asking)
    page.page.wait_for_selector(f'[data-id="{there}"] .host >> text=ago')
    page.open(f"builder/{here}/prompt")
    page.page.wait_for_selector("text=[[say:I am here]]")
    page.page.click("#tab-terminal")
    wait_until(lambda: "I am here" in terminal_text(page), what="the terminal of one here")
    big.go_on()
    for one in asking:
        one.join()


def test_what_a_repository_wants_there_is_read_and_agreed_to_here(
    af: Af, big: Node, repo: Path, page: Visit
) -> None:
    commit_files(repo, {"agent-farm.toml": '[worktree]\nsetup = "touch prepared"\n'})
    page.expect("409")
    page.open("spawn")
    page.page.wait_for_selector("#spawn-on", state="attached")
    page.page.fill("#spawn-task", "[[say:done]]")
    page.page.select_option("#spawn-runtime", "demo")
    page.page.click("details.more summary")
    page.page.select_option("#spawn-on", "big")
    page.page.click("button[type=submit]")
    page.page.wait_for_selector(".error >> text=big: This repository wants")
    page.page.wait_for_selector(".error >> text=touch prepared")
    page.page.click("text=Agree and spawn")
    page.page.wait_for_selector(".builder-head", timeout=60000)
    (one,) = json.loads(ok(af, "status", "--fresh", "--json"))["builders"]
    wait_until(lambda: (worktree(big, one["id"]) / "prepared").exists(), what="its setup")

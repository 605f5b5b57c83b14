"""The board in a real browser: all types, live, in order, at any width, and readable for everybody."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.conftest import AXE, report
from tests.dashboard.stage import Dashboard
from tests.gitrepo import git, make_repo
from tests.waiting import wait_until

Spawn = Callable[..., str]
Open = Callable[..., Visit]


def serious_findings(visit: Visit) -> list[str]:
    visit.page.evaluate(AXE.read_text())
    found = visit.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary'][:300]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.fixture
def four(spawn: Spawn, af: Af) -> dict[str, str]:
    """One builder of each type; the task waits for an answer."""
    ids = {
        "task": spawn("Remove stale sessions [[ask:Delete 14 stale sessions?]]"),
        "spec": spawn("--project", "9"),
        "protocol": spawn("--protocol", "experiment", "--args", '{"hypothesis": "Redis is faster"}'),
        "shell": spawn("--shell"),
    }
    done = af("wait", ids["task"], "--for", "waiting", "--timeout", "300")
    assert done.returncode == 0, done.stderr
    assert af("wait", ids["spec"], ids["protocol"], ids["shell"], "--timeout", "300").returncode == 0
    return ids


def test_all_four_types_are_shown_with_who_needs_a_person_first(four: dict[str, str], visit: Open) -> None:
    page = visit().page
    page.wait_for_selector(".builder")
    groups = page.eval_on_selector_all(
        ".group", "all => all.map(one => [one.dataset.type, one.querySelectorAll('.builder').length])"
    )
    assert groups == [["spec", 1], ["task", 1], ["protocol", 1], ["shell", 1]]
    needs = page.inner_text(".needs")
    assert "1 builder needs you" in needs
    assert "Delete 14 stale sessions?" in needs
    assert four["task"] in needs
    row = page.inner_text(f'[data-id="{four["protocol"]}"]')
    for text in ("idle", "hook", "experiment", "Redis is faster", "demo", four["protocol"], ":"):
        assert text in row
    page.wait_for_selector(f'[data-id="{four["spec"]}"] .ahead')
    assert page.title().startswith("(1)")


def test_the_address_bar_and_the_log_never_hold_the_ticket(dashboard: Dashboard, visit: Open) -> None:
    one = visit(log_in=False)
    asked: list[str] = []
    one.page.on("request", lambda request: asked.append(request.url))
    address = dashboard.login_address()
    ticket = address.partition("#")[2]
    one.page.goto(address)
    one.page.wait_for_url(f"{dashboard.address}/")
    one.page.wait_for_selector("#connection[data-state=live]")
    assert ticket not in one.page.url
    assert not [url for url in asked if ticket in url.partition("#")[0]]
    assert one.page.evaluate("document.cookie") == ""
    one.page.go_back()
    assert ticket not in one.page.url
    assert ticket not in dashboard.log.read_text()
    assert one.page.context.cookies() == []


def test_an_address_is_good_once(dashboard: Dashboard, visit: Open) -> None:
    address = dashboard.login_address()
    first, second = visit(log_in=False), visit(log_in=False)
    first.page.goto(address)
    first.page.wait_for_url(f"{dashboard.address}/")
    second.expect("401")
    second.page.goto(address)
    second.page.wait_for_selector("text=has been used")
    assert second.page.url == f"{dashboard.address}/login"


def test_changes_come_by_themselves(spawn: Spawn, af: Af, visit: Open) -> None:
    page = visit().page
    page.wait_for_selector(".empty h1")
    id = spawn("[[sleep:1]] then [[ask:Go on?]]")
    page.wait_for_selector(f'[data-id="{id}"]', timeout=60000)
    page.wait_for_selector(f'[data-id="{id}"][data-state=waiting]', timeout=60000)
    page.wait_for_selector("text=Go on?")
    assert af("stop", id).returncode == 0
    page.wait_for_selector(f'[data-id="{id}"][data-state=stopped]', timeout=60000)
    assert af("prune", id).returncode == 0
    page.wait_for_selector(".empty h1", timeout=60000)


def test_a_state_change_is_seen_within_a_second(shop: Path, spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    page = visit().page
    page.wait_for_selector(f'[data-id="{id}"][data-state=idle]')
    began = time.monotonic()
    report(shop, id, "waiting", "a made-up question")
    page.wait_for_selector(f'[data-id="{id}"][data-state=waiting]', timeout=60000)
    assert time.monotonic() - began < 10  # a second, on a machine that has nothing else to do


def test_what_is_read_stays_selected_while_others_change(
    shop: Path, spawn: Spawn, af: Af, visit: Open
) -> None:
    read, other = spawn("Fix auth"), spawn("--shell")
    assert af("wait", read, other, "--timeout", "300").returncode == 0
    page = visit().page
    page.wait_for_selector(f'[data-id="{read}"] .git .ahead')
    page.evaluate(
        "id => getSelection().selectAllChildren(document.querySelector(`[data-id='${id}'] .title`))", read
    )
    page.focus(f'[data-id="{other}"]')
    report(shop, other, "waiting", "which one?")
    page.wait_for_selector(f'.rows [data-id="{other}"][data-state=waiting]')
    assert page.evaluate("String(getSelection())") == "Fix auth"
    assert page.evaluate("document.activeElement.dataset.id") == other


def test_a_killed_session_is_lost(spawn: Spawn, af: Af, visit: Open) -> None:
    """Nothing is written then: tmux is asked."""
    import subprocess

    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    page = visit().page
    page.wait_for_selector(f'[data-id="{id}"][data-state=idle]')
    subprocess.run(["tmux", "kill-server"], check=True)
    page.wait_for_selector(f'[data-id="{id}"][data-state=lost]', timeout=60000)


def test_the_page_is_right_again_after_a_break(spawn: Spawn, af: Af, visit: Open) -> None:
    """The server ends, much happens, another one comes up: the page finds out and stays logged in."""
    one, gone, shown = spawn("--shell"), spawn("--shell"), visit()
    shown.expect("ERR_")
    page = shown.page
    page.wait_for_selector(f'[data-id="{gone}"]')
    page.evaluate("window.isTheSame = true")
    shown.dashboard.end()
    other = spawn("--shell")
    assert af("stop", one, gone).returncode == 0
    assert af("prune", gone).returncode == 0
    shown.dashboard.start()
    page.wait_for_selector(f'[data-id="{one}"][data-state=stopped]', timeout=60000)
    page.wait_for_selector(f'[data-id="{other}"]')
    assert page.locator(f'[data-id="{gone}"]').count() == 0
    assert page.evaluate("window.isTheSame")


def test_filter_and_keys(four: dict[str, str], visit: Open) -> None:
    page = visit().page
    page.wait_for_selector(".builder")
    page.keyboard.press("/")
    page.keyboard.type("postgres")
    page.keyboard.press("Escape")
    page.wait_for_selector(".empty")
    page.fill("#filter", "experiment")
    assert page.locator(".rows .builder").count() == 1
    page.fill("#filter", "")
    page.click("[data-chip=waiting]")
    assert page.locator(".rows .builder").count() == 1
    page.click("[data-chip=all]")
    page.keyboard.press("Escape")
    page.locator("body").press("j")
    page.keyboard.press("j")
    focused = page.evaluate("document.activeElement.dataset.id")
    assert focused == four["task"]
    page.keyboard.press("Enter")
    page.wait_for_selector(".builder-head")
    page.keyboard.press("Escape")
    page.wait_for_selector("#filter")
    page.keyboard.press("?")
    page.wait_for_selector("dialog .keys")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_view_is_accessible_and_fits(four: dict[str, str], visit: Open, width: int, dark: bool) -> None:
    one = visit(width=width, dark=dark)
    page = one.page
    page.wait_for_selector(f'[data-id="{four["spec"]}"] .ahead')
    views = {
        "board": ("", ".needs"),
        "terminal": (f"builder/{four['task']}", ".xterm-rows"),
        "diff": (f"builder/{four['spec']}/diff", ".file"),
        "conflicts": (f"builder/{four['spec']}/conflicts", ".panel .empty"),
        "timeline": (f"builder/{four['spec']}/timeline", ".timeline li"),
        "prompt": (f"builder/{four['spec']}/prompt", ".prose"),
        "spawn": ("spawn", ".modes"),
        "sessions": ("sessions", ".plot"),
        "farms": ("farms", "[data-farm]"),
        "costs": ("costs", ".plot"),
        "removed": ("removed", ".empty"),
    }
    for name, (where, selector) in views.items():
        one.open(where)
        page.wait_for_selector(selector)
        assert serious_findings(one) == [], name
        assert not one.has_sideways_scrolling(), name


def test_the_server_says_when_the_registry_cannot_be_read(shop: Path, spawn: Spawn, visit: Open) -> None:
    id = spawn("--shell")
    page = visit().page
    page.wait_for_selector(f'[data-id="{id}"]')
    registry = shop / ".agent-farm/registry.json"
    good = registry.read_text()
    registry.write_text("{")
    page.wait_for_selector("#problem:visible", timeout=60000)
    assert "damaged" in page.inner_text("#problem")
    registry.write_text(good)
    wait_until(lambda: not page.is_visible("#problem"), what="the problem to go")
    page.wait_for_selector(f'[data-id="{id}"]')


def test_a_question_is_answered_where_it_is_read(four: dict[str, str], visit: Open) -> None:
    page = visit().page
    page.click(".needs [data-option='1']:has-text('yes')")
    page.wait_for_selector(f'[data-id="{four["task"]}"][data-state=idle]', timeout=60000)
    wait_until(lambda: not page.is_visible(".needs"), timeout=60, what="nobody to need a person")


def test_the_landing_queue_is_in_view_and_goes_on_from_the_page(
    shop: Path, spawn: Spawn, af: Af, visit: Open
) -> None:
    (shop / "agent-farm.toml").write_text('[check]\ncommand = "! ls bad*"\n')
    (shop / "bad.md").write_text("x\n")
    git(shop, "add", "bad.md")
    git(shop, "commit", "-q", "-m", "broken")
    assert af("config", "agree", "--yes").returncode == 0
    id = spawn("[[write:good.txt]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    one = visit()
    one.open(f"builder/{id}")
    one.page.click("[data-action=merge]")
    one.page.click("text=Put into the landing queue")
    one.open("")
    one.page.wait_for_selector("text=The landing on main stopped", timeout=60000)
    assert "The check fails on main itself" in one.page.inner_text(".landing")
    assert serious_findings(one) == []
    git(shop, "rm", "-q", "bad.md")
    git(shop, "commit", "-q", "-m", "mended")
    one.page.click("[data-action=land_continue]")
    one.page.wait_for_selector(f'[data-landing=landed]:has-text("{id}")', timeout=60000)
    assert "good.txt" in git(shop, "ls-tree", "--name-only", "HEAD")


def test_several_farms_are_in_one_page(shop: Path, idle: str, visit: Open) -> None:
    other = make_repo(shop.parent / "mill")

    def run(*words: str) -> str:
        argv = [sys.executable, "-m", "agent_farm", *words]
        return subprocess.run(argv, cwd=other, check=True, capture_output=True, text=True).stdout

    id = run("spawn", "--runtime", "demo", "[[ask:Grind it?]]").strip()
    try:
        run("wait", id, "--for", "waiting", "--timeout", "300")
        one = visit()
        one.open("farms")
        mill, here = (f'[data-farm="{root}"]' for root in (other, shop))
        one.page.wait_for_selector(f"{mill} >> text=Grind it?", timeout=60000)
        assert one.page.inner_text(f"{mill} .badge") == "1"
        assert one.page.locator(f"{mill} a").count() == 0  # its server does not run
        assert serious_findings(one) == []
        one.page.click(f"{here} li a")
        one.page.wait_for_selector(".builder-head")
        addresses = json.loads(run("dash", "--all", "--json"))
        assert addresses["address"].endswith("/farms")
        assert str(shop) in addresses["farms"]
        one.open("farms")
        one.page.wait_for_selector(f"{mill} a >> text=Grind it?", timeout=60000)
    finally:
        run("prune", id, "--stop", "--discard-changes")
        run("butler", "stop", "--now")


@pytest.mark.parametrize("width", [360, 1280])
def test_a_long_word_widens_no_view(spawn: Spawn, af: Af, visit: Open, width: int) -> None:
    word = "Loremipsumdolorsitamet" * 15
    kept, removed = (spawn(f"{word} {text} [[write:{text}.txt]]") for text in ("kept", "removed"))
    assert af("wait", kept, removed, "--timeout", "300").returncode == 0
    assert af("prune", removed, "--stop", "--discard-commits").returncode == 0
    one = visit(width=width)
    for where, shown in {
        "": ".builder", f"builder/{kept}": ".xterm-rows", "review": "tbody tr", f"review/{kept}": ".file",
        "farms": "[data-farm] li", "costs": "[data-cost]", "removed": "tbody tr",
    }.items():  # fmt: skip
        one.open(where)
        one.page.wait_for_selector(shown, timeout=60000)
        assert not one.has_sideways_scrolling(), where
        hidden = "[...document.querySelectorAll('.scroll')].some(one => one.scrollWidth > one.clientWidth)"
        assert where == "costs" or not one.page.evaluate(hidden), where


def test_what_builders_cost_is_plotted(spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("[[write:one.txt]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    one = visit()
    one.open("costs")
    one.page.wait_for_selector(f'[data-cost="{id}"]', timeout=60000)
    names = [f"{what} by {word}" for word in ("day", "runtime", "builder") for what in ("Tokens", "Cost")]
    assert one.page.locator(".plot h2").all_inner_texts() == names
    assert one.page.locator(".plot").last.locator(".name").all_inner_texts() == [id]
    assert serious_findings(one) == []
    assert not one.has_sideways_scrolling()


def test_five_hundred_builders(shop: Path, spawn: Spawn, visit: Open) -> None:
    from tests.dashboard.crowd import gather

    ids = gather(shop, spawn("--shell"), 499)
    page = visit().page
    page.wait_for_function("document.querySelectorAll('.rows .builder').length === 500", timeout=60000)
    first = page.evaluate(
        "[...document.querySelectorAll('.group')].map(one => one.querySelector('.builder').dataset.state)"
    )
    assert first[:2] == ["waiting", "waiting"]
    began = time.monotonic()
    report(shop, ids[250], "waiting", "the one among many")
    page.wait_for_selector(f'[data-id="{ids[250]}"][data-state=waiting]', timeout=60000)
    assert time.monotonic() - began < 10  # a second, on a machine that has nothing else to do
    page.fill("#filter", "among many")
    wait_until(lambda: page.locator(".rows .builder").count() == 1, what="the filter")


def test_broken_settings_are_named_until_they_are_mended(shop: Path, visit: Open) -> None:
    (shop / "agent-farm.toml").write_text('[spwan]\nruntime = "demo"\n')
    one = visit(log_in=False)
    one.page.goto(one.dashboard.login_address())
    one.page.wait_for_selector("#problem:visible")
    assert "unknown key spwan.runtime" in one.page.inner_text("#problem")
    (shop / "agent-farm.toml").unlink()
    one.page.wait_for_selector(".empty h1", timeout=60000)
    wait_until(lambda: not one.page.is_visible("#problem"), what="the problem to go")


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


def test_failed_builders_are_among_those_that_need_a_person(shop: Path, spawn: Spawn, visit: Open) -> None:
    id = spawn("[[crash]]")
    page = visit().page
    page.wait_for_selector(f'.needs [data-need="{id}"]', timeout=60000)
    assert "failed" in page.inner_text(".needs")

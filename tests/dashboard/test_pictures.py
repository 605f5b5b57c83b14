"""The page as a person sees it, in docs/screenshots/; what is there stays: delete a picture to renew it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.conftest import FILES
from tests.dashboard.crowd import gather
from tests.dashboard.stage import FIRST
from tests.dashboard.test_forms import record_sessions
from tests.gitrepo import commit_files, git, make_repo
from tests.waiting import wait_until

Open = Callable[..., Visit]
Spawn = Callable[..., str]
SIZES = {"desktop": (1280, 800), "phone": (360, 740)}

AUTH = """def login(user: str, password: str) -> str:
    session = find(user, password)
    return redirect(session.start or "/")
"""
CHANGED = """def login(user: str, password: str) -> str:
    session = find(user, password)
    if session is None:
        return redirect("/login?failed")
    return redirect(safe_path(session.start))
"""


@pytest.fixture(scope="module")
def shop(home: Path) -> Path:
    """The same in every picture, whatever the machine is called."""
    (home / ".tmux.conf").write_text('set -g status-right ""\n')
    root = make_repo(home.parent / "shop", FILES)
    git(root, "update-ref", FIRST, "HEAD")
    return root


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_empty_farm(visit: Open, size: str, dark: bool) -> None:
    one = look(visit, size, dark)
    one.page.wait_for_selector(".empty h1")
    one.shoot(f"empty-{name(size, dark)}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_crowd(visit: Open, spawn: Spawn, shop: Path, size: str, dark: bool) -> None:
    gather(shop, spawn("Remove stale sessions [[ask:Delete 14 stale sessions?]]"), 199, worktrees=30)
    one = look(visit, size, dark)
    one.page.wait_for_selector(".group")
    wait_until(lambda: one.page.locator(".git .ahead").count() > 5, what="git to be read")
    assert not one.has_sideways_scrolling()
    one.shoot(f"builders-{name(size, dark)}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_one_builder(visit: Open, spawn: Spawn, af: Af, shop: Path, size: str, dark: bool) -> None:
    commit_files(shop, {"src/auth.py": AUTH}, "Log in")
    id = spawn("Fix the login redirect [[write:docs/login.md]]", "--files", "src/auth.py")
    assert af("wait", id, "--timeout", "300").returncode == 0
    (shop / ".builders" / id / "src/auth.py").write_text(CHANGED)
    one = look(visit, size, dark)
    one.expect("409")
    one.page.wait_for_selector(".builder .ahead")
    one.shoot(f"one-{name(size, dark)}")
    one.open(f"builder/{id}")
    wait_until(lambda: "answer" in one.page.inner_text(".xterm-rows"), what="the terminal")
    one.shoot(f"terminal-{name(size, dark)}")
    if size == "phone":
        one.page.click("#typing")
        one.page.wait_for_selector("text=keys go to the builder")
        one.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        one.shoot(f"typing-{name(size, dark)}")
    one.page.click("#tab-diff")
    one.page.wait_for_selector(".code tr")
    one.shoot(f"diff-{name(size, dark)}")
    assert af("stop", id).returncode == 0
    one.page.click("[data-action=prune]")
    one.page.wait_for_selector("dialog >> text=src/auth.py")
    one.shoot(f"prune-{name(size, dark)}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_sessions_and_forms(visit: Open, af: Af, shop: Path, size: str, dark: bool) -> None:
    record_sessions(shop)
    assert af("schedule", "add", "daily_digest", "0 8 * * 1-5", "Write the digest").returncode == 0
    one = look(visit, size, dark)
    one.open("sessions")
    one.page.wait_for_selector("[data-session]")
    one.page.wait_for_selector(".schedule")
    one.shoot(f"sessions-{name(size, dark)}")
    one.open("spawn")
    one.page.wait_for_selector("#spawn-runtime option[value=demo]", state="attached")
    one.page.fill("#spawn-task", "Tidy up the login")
    one.page.select_option("#spawn-runtime", "demo")
    one.shoot(f"spawn-{name(size, dark)}")


REVIEWED = {
    "Fix the login redirect after a password reset": {"src/auth.py": CHANGED},
    "Say which field of the address is wrong": {"src/address.py": "FIELDS = ('street', 'city', 'zip')\n"},
    "Escape names in the invoice template": {
        "src/invoice.py": "from html import escape\n\n\ndef name(of: str) -> str:\n    return escape(of)\n"
    },
    "Test the currency rounding at midnight": {
        "tests/test_money.py": "def test_rounds() -> None:\n    ...\n"
    },
}


@pytest.mark.parametrize("size", SIZES)
def test_review(visit: Open, spawn: Spawn, af: Af, shop: Path, size: str) -> None:
    settings = '[check]\ncommand = "python3 -m compileall -q src"\n'
    commit_files(shop, {"src/auth.py": AUTH, "agent-farm.toml": settings}, "Log in")
    assert af("config", "agree", "--yes").returncode == 0
    ids = [spawn(task) for task in REVIEWED]
    assert af("wait", *ids, "--timeout", "300").returncode == 0
    for id, (task, files) in zip(ids, REVIEWED.items(), strict=True):
        tree = shop / ".builders" / id
        git(tree, "rm", "-q", "demo-*.md")
        commit_files(tree, files, task)
    assert af("check", *ids[:3]).returncode == 0
    one = look(visit, size, dark=False)
    one.open("review")
    wait_until(lambda: one.page.locator("tbody tr").count() == len(ids), what="all results")
    assert not one.has_sideways_scrolling()
    one.shoot(f"review-{name(size, False)}")


@pytest.mark.parametrize("size", SIZES)
def test_costs(visit: Open, spawn: Spawn, shop: Path, size: str) -> None:
    spend(shop, gather(shop, spawn("--shell"), 12, worktrees=12))
    one = look(visit, size, dark=False)
    one.open("costs")
    one.page.wait_for_selector("[data-cost]")
    assert not one.has_sideways_scrolling()
    one.shoot(f"costs-{name(size, False)}")


def spend(root: Path, ids: Sequence[str]) -> None:
    """Turns over three weeks, by two runtimes."""
    registry = root / ".agent-farm/registry.json"
    document = json.loads(registry.read_text())
    for number, id in enumerate(ids):
        document["builders"][id]["runtime"] = ("claude-code", "codex")[number % 3 == 2]
        turns, at = [], time.time() - 86400 * (20 - number * 7 % 19)
        for turn in range(1, 4 + number % 3):
            used = {
                "input_tokens": 41_000 * turn + number * 3_700,
                "output_tokens": 5_200 * turn + number * 310,
            }
            cost = {} if number % 3 == 2 else {"cost": 0.31 * turn + number * 0.04}
            turns.append(
                {"at": at + turn * 900, "run": "a", "conversation": id, "cached_tokens": 30_000 * turn}
            )
            turns[-1] |= used | cost
        file = root / ".agent-farm/runs" / id / "usage.jsonl"
        file.write_text("".join(f"{json.dumps(one)}\n" for one in turns))
        file.chmod(0o600)
    registry.write_text(json.dumps(document))


def look(visit: Open, size: str, dark: bool) -> Visit:
    width, height = SIZES[size]
    return visit(width=width, height=height, dark=dark)


def name(size: str, dark: bool) -> str:
    return f"{size}-{'dark' if dark else 'light'}"

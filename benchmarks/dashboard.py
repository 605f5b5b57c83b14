"""The dashboard with 200 demo builders: first paint, CPU at rest, and how soon a change shows.

Needs Chromium and Playwright. `DASHBOARD_BUILDERS=500` asks for another number.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.stage import AF, Rows, Stage, spawn_idle, spread, stage

BUILDERS = int(os.environ.get("DASHBOARD_BUILDERS", "200"))
AT_REST_SECONDS = 15.0
CHANGES = 20
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
# Told by the page itself: when a row first took the state, on the clock of this machine.
WATCH = """() => {
    window.seen = {};
    new MutationObserver(() => {
        for (const row of document.querySelectorAll('.rows .builder[data-state=waiting]')) {
            const says = row.querySelector('.why')?.textContent;
            if (says && !(says in window.seen)) window.seen[says] = Date.now();
        }
    }).observe(document.querySelector('main'), { subtree: true, childList: true, attributes: true });
}"""
PAINT = """() => new Promise(done => {
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    const painted = () => done([paint?.startTime ?? null, performance.now()]);
    const look = () => document.querySelectorAll('.rows .builder').length
        ? requestAnimationFrame(painted) : setTimeout(look, 5);
    look();
})"""


def main() -> Rows:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return [("left out", "Chromium is not installed")]
    if find_spec("playwright") is None:
        return [("left out", "Playwright is not installed")]
    with stage() as on:
        ids = spawn_idle(on, BUILDERS)
        try:
            return _measured(on, ids, chromium)
        finally:
            subprocess.run(
                [AF, "butler", "stop", "--now"], cwd=on.repository, env=dict(on.env), capture_output=True
            )


def _measured(on: Stage, ids: list[str], chromium: str) -> list[tuple[str, object]]:
    from playwright.sync_api import sync_playwright

    address = json.loads(on.run(AF, "dash", "--json"))["address"]
    pid = json.loads(on.run(AF, "butler", "status", "--json"))["server"]["pid"]
    with tempfile.TemporaryDirectory(prefix="af-chr-", dir="/tmp") as short, sync_playwright() as playwright:
        env: dict[str, str | float | bool] = {**os.environ, "HOME": short, "TMPDIR": short}
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS, env=env)
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector(".rows .builder")
        paints = [_paint(page) for _ in range(5)]
        page.wait_for_timeout(15_000)  # git's state of all worktrees is read meanwhile
        rest = _cpu_at_rest(pid)
        delays = _changes(on, page, ids)
        browser.close()
    return [
        (f"{BUILDERS} builders: first paint, ms", spread([first for first, _ in paints])),
        (f"{BUILDERS} builders: all rows painted, ms", spread([whole for _, whole in paints])),
        ("server at rest with a page open: % of a core", round(rest * 100, 2)),
        ("a change reaches the page, ms", spread(delays)),
        ("a change reaches the page, worst, ms", round(max(delays))),
    ]


def _paint(page: Any) -> tuple[float, float]:
    page.reload()
    first, whole = page.evaluate(PAINT)
    return (first or whole), whole


def _cpu_at_rest(pid: int) -> float:
    """Of the server and of what it starts, tmux's answers included."""
    import psutil

    process = psutil.Process(pid)

    def spent() -> float:
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)

    before, began = spent(), time.monotonic()
    time.sleep(AT_REST_SECONDS)
    return (spent() - before) / (time.monotonic() - began)


def _changes(on: Stage, page: Any, ids: list[str]) -> list[float]:
    page.evaluate(WATCH)
    reported: dict[str, float] = {}
    for number in range(CHANGES):
        id, text = ids[number * len(ids) // CHANGES], f"question {number}"
        reported[text] = time.time() * 1000
        _report(on.repository / ".agent-farm/runs" / id, text)
        page.wait_for_function("text => text in window.seen", arg=text, timeout=5000)
    seen = page.evaluate("window.seen")
    return [seen[text] - at for text, at in reported.items()]


def _report(run: Path, text: str) -> None:
    """As a hook does it."""
    known = json.loads((run / "record.json").read_text())["run"]
    event = {"at": time.time(), "run": known, "source": "hook", "event": "Notification"}
    with open(run / "events.jsonl", "a") as file:
        file.write(json.dumps(event | {"state": "waiting", "reason": text}) + "\n")

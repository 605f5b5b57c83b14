"""Spawning, triggering and scheduling from the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.stage import Dashboard
from tests.waiting import wait_until

Open = Callable[..., Visit]


def test_a_task_is_spawned_from_the_form(visit: Open, af: Af, shop: Path) -> None:
    one = visit()
    one.page.keyboard.press("n")
    one.page.wait_for_selector("#spawn-runtime option[value=demo]", state="attached")
    one.page.fill("#spawn-task", "Fix the login [[say:done]]")
    one.page.click("details.more summary")
    one.page.fill("#spawn-files", "src/auth.py")
    one.page.select_option("#spawn-runtime", "demo")
    one.page.click("text=Show the plan")
    one.page.wait_for_selector("text=It would make")
    assert "Relevant files: src/auth.py" in one.page.inner_text("[aria-label=Plan]")
    assert not (shop / ".builders").exists()
    one.page.click("button[type=submit]")
    one.page.wait_for_selector(".builder-head [data-state=idle]", timeout=60000)
    assert "Fix the login" in one.page.inner_text("h1")


@pytest.mark.parametrize(
    ("mode", "fill", "type"),
    [
        ("project", {}, "spec"),
        ("protocol", {"#spawn-args": '{"scope": "src"}'}, "protocol"),
        ("shell", {}, "shell"),
    ],
)
def test_the_other_modes(
    visit: Open, dashboard: Dashboard, mode: str, fill: dict[str, str], type: str
) -> None:
    one = visit()
    one.open("spawn")
    one.page.wait_for_selector("#spawn-runtime option[value=demo]", state="attached")
    one.page.check(f"[name=mode][value={mode}]")
    for where, text in fill.items():
        one.page.fill(where, text)
    one.page.select_option("#spawn-runtime", "demo")
    one.page.click("button[type=submit]")
    one.page.wait_for_selector(".builder-head")
    made = dashboard.get("/api/status")["builders"]
    assert [builder["type"] for builder in made] == [type]
    if mode == "protocol":
        assert made[0]["protocol_args"] == {"scope": "src"}
    if mode == "project":
        assert made[0]["id"] == "0009"


def test_a_mistake_keeps_what_was_typed_and_says_what_to_do(visit: Open) -> None:
    one = visit()
    one.expect("40")
    one.open("spawn")
    one.page.wait_for_selector("#spawn-runtime option[value=demo]", state="attached")
    one.page.fill("#spawn-task", "Tidy up")
    one.page.click("details.more summary")
    one.page.fill("#spawn-files", "src/none.py")
    one.page.select_option("#spawn-runtime", "demo")
    one.page.click("button[type=submit]")
    one.page.wait_for_selector(".error")
    said = one.page.inner_text("[data-field=files] .error")
    assert said.splitlines()[0] == "“Files”: src/none.py is not in the repository"
    assert "In a terminal: git ls-files" in said
    assert one.page.input_value("#spawn-task") == "Tidy up"
    one.open("")
    one.open("spawn")
    assert one.page.input_value("#spawn-task") == "Tidy up"


def test_consent_is_asked_in_the_form(visit: Open, shop: Path) -> None:
    (shop / "agent-farm.toml").write_text('[worktree]\nsetup = "echo made by setup"\n')
    one = visit()
    one.expect("409")
    one.open("spawn")
    one.page.wait_for_selector("#spawn-runtime option[value=demo]", state="attached")
    one.page.check("[name=mode][value=shell]")
    one.page.select_option("#spawn-runtime", "demo")
    one.page.click("button[type=submit]")
    one.page.wait_for_selector(".error >> text=echo made by setup")
    assert "Read it before you agree." in one.page.inner_text(".error")
    assert "--yes" not in one.page.inner_text(".error")
    (shop / "agent-farm.toml").write_text('[worktree]\nsetup = "echo made since"\n')
    one.page.click("text=Agree and spawn")
    one.page.wait_for_selector(".error >> text=echo made since")
    one.page.click("text=Agree and spawn")
    one.page.wait_for_selector(".builder-head")


def record_sessions(root: Path) -> None:
    """As the butler leaves them."""
    from msgspec import structs

    from agent_farm.sessions.records import session_complete, session_create, session_start
    from agent_farm.sessions.session import Session
    from agent_farm.sessions.stores import open_database

    database = open_database(root)

    async def fill() -> None:
        for number in range(6):
            failed = number == 3
            asked = Session(
                id=f"session{number}-0000",
                butler="repo",
                trigger_source="schedule:daily" if number % 2 else "external",
                prompt=f"Check the nightly build {number} <b>now</b>",
                runtime="demo",
            )
            created = await session_create(database, asked)
            await session_start(database, created.id)
            ended = structs.replace(
                created,
                state="failed" if failed else "completed",
                success=not failed,
                output="All is well.",
                tool_calls=[{"name": "Read", "input": {"path": "a.py"}, "is_error": False}],
                error="The model refused" if failed else None,
                duration=12.5,
                input_tokens=1000 * number,
                output_tokens=200,
                cached_tokens=0,
                cost=0.25,
                conversation_id="conversation",
            )
            await session_complete(database, ended)

    with ThreadPoolExecutor(1) as aside:  # this thread has a loop already, Playwright's
        aside.submit(asyncio.run, fill()).result()
    database.close()


def test_sessions_are_listed_plotted_and_shown_whole(visit: Open, shop: Path) -> None:
    one = visit()
    one.open("sessions")
    one.page.wait_for_selector("text=No sessions in this time")
    record_sessions(shop)
    one.page.wait_for_selector("[data-session]", timeout=60000)  # it came by itself
    wait_until(lambda: one.page.locator("[data-session]").count() == 6, what="all sessions")
    plots = " ".join(one.page.locator(".plot h2").all_inner_texts())
    assert "6" in plots
    assert "16k" in plots
    assert "$1.50" in plots
    assert one.page.locator(".plot rect").count() >= 4
    one.page.select_option("#state", "failed")
    wait_until(lambda: one.page.locator("[data-session]").count() == 1, what="the failed one")
    assert "The model refused" in one.page.inner_text("[data-session]")
    one.page.select_option("#state", "")
    one.page.fill("#source", "schedule:daily")
    one.page.keyboard.press("Enter")
    wait_until(lambda: one.page.locator("[data-session]").count() == 3, what="the scheduled ones")
    one.page.click("[data-session] a >> nth=0")
    one.page.wait_for_selector("text=All is well.")
    shown = one.page.inner_text("main")
    for text in ("Check the nightly build 5 <b>now</b>", "Read", "a.py", "schedule:daily", "5.0k / 200"):
        assert text in shown


def test_schedules_are_added_switched_and_removed(visit: Open, af: Af) -> None:
    one = visit()
    one.expect("400")
    one.open("sessions")
    one.page.click("text=Add …")
    one.page.fill("#add-name", "daily_digest")
    one.page.fill("#add-cron", "99 8 * * *")
    one.page.fill("#add-prompt", "Write the digest")
    one.page.click("dialog [type=submit]")
    one.page.wait_for_selector("dialog .error")
    one.page.fill("#add-cron", "0 8 * * 1-5")
    one.page.click("dialog [type=submit]")
    one.page.wait_for_selector(".schedule")
    assert "daily_digest" in af("schedule", "list").stdout
    one.page.click("[aria-label='Disable daily_digest']")
    one.page.wait_for_selector("[aria-label='Enable daily_digest']")
    assert "disabled" in af("schedule", "list").stdout
    one.page.click("[aria-label='Remove daily_digest']")
    one.page.wait_for_selector(".schedule", state="detached")
    assert "daily_digest" not in af("schedule", "list").stdout


def test_what_was_typed_of_a_schedule_stays_until_it_is_added(visit: Open, af: Af) -> None:
    one = visit()
    one.open("sessions")
    typed = {"name": "weekly", "cron": "0 8 * * 1", "timezone": "Europe/Berlin", "prompt": "Say hello"}

    def found() -> dict[str, str]:
        return {name: one.page.input_value(f"#add-{name}") for name in typed}

    one.page.click("text=Add …")
    for name, text in typed.items():
        one.page.fill(f"#add-{name}", text)
    for leave in (lambda: one.page.keyboard.press("Escape"), lambda: one.page.click("dialog >> text=Cancel")):
        leave()
        one.page.wait_for_selector("dialog", state="detached")
        one.page.click("text=Add …")
        assert found() == typed
    one.page.click("dialog [type=submit]")
    one.page.wait_for_selector(".schedule >> text=Europe/Berlin")
    one.page.click("text=Add …")
    assert found() == dict.fromkeys(typed, "")


def test_without_xterm_the_screen_is_shown_and_says_so(
    visit: Open, spawn: Callable[..., str], af: Af
) -> None:
    id = spawn("[[say:plain as day]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    one = visit()
    one.page.evaluate("import('/static/js/live.js').then(live => { live.farm.terminal = 'screen'; })")
    one.open(f"builder/{id}")
    one.page.wait_for_selector("text=this installation has no xterm.js")
    wait_until(lambda: "answer: plain as day" in one.page.inner_text(".screen"), what="the screen")


def test_a_session_is_stopped_and_gone_on_with(visit: Open, dashboard: Dashboard) -> None:
    def start(prompt: str) -> str:
        return str(
            dashboard.post("/api/trigger", {"prompt": prompt, "runtime": "demo", "wait": False})["session_id"]
        )

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
    (session,) = dashboard.get("/api/sessions_list")["sessions"]
    assert session["trigger_source"] == "schedule:digest"


def test_what_a_schedule_of_the_repository_wants_is_read_and_agreed_to(
    visit: Open, shop: Path, af: Af
) -> None:
    place = shop / "codev/roster/health"
    place.mkdir(parents=True)
    (place / "butler.toml").write_text(
        '[butler]\nruntime = "demo"\n'
        '[[butler.schedule]]\nname = "daily"\ncron = "0 8 * * *"\nprompt = "Look around"\n'
    )
    one = visit()
    one.expect("409")
    one.open("sessions")
    one.page.wait_for_selector(".schedule >> text=not agreed to, so it does not fire", timeout=60000)
    one.page.click("[aria-label='Read and agree … daily']")
    one.page.wait_for_selector("dialog .error >> text=Look around")
    assert "--yes" not in one.page.inner_text("dialog")
    assert "not agreed to" in af("schedule", "list").stdout
    one.page.click("dialog button:text-is('Agree')")
    one.page.wait_for_selector(".schedule >> text=next ", timeout=60000)
    assert "not agreed to" not in af("schedule", "list").stdout


def test_an_empty_list_says_what_to_do_next(visit: Open) -> None:
    one = visit()
    one.open("sessions")
    one.page.click("text=Trigger one")
    assert one.page.evaluate("document.activeElement.id") == "prompt"
    failed = [{"id": name, "code": "error", "what": f"{name} cannot be read"} for name in ("a", "b")]
    one.page.route(
        "**/api/review", lambda route: route.fulfill(json={"version": 1, "items": [], "failed": failed})
    )
    one.open("review")
    one.page.wait_for_selector("text=Nothing waits for a review")
    assert one.page.locator(".error").all_inner_texts() == ["a cannot be read", "b cannot be read"]
    one.page.click(".empty >> text=New builder")
    one.page.wait_for_selector("#spawn-task")

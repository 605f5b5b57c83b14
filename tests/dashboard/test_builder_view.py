"""One builder in a real browser: its terminal, messages, what it changed, and what is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.gitrepo import git
from tests.waiting import wait_until

Spawn = Callable[..., str]
Open = Callable[..., Visit]


def tmux(*args: str) -> str:
    done = subprocess.run(["tmux", *args], capture_output=True, text=True, check=False, timeout=120)
    return done.stdout.strip()


def clients() -> list[str]:
    return tmux("list-clients", "-F", "#{client_name} #{client_readonly} #{client_width}").splitlines()


def screen_of(session: str) -> str:
    return tmux("capture-pane", "-p", "-t", f"={session}:")


def terminal_text(visit: Visit) -> str:
    return str(visit.page.inner_text("#terminal .xterm-rows")).replace("\xa0", " ")


@pytest.fixture
def idle(spawn: Spawn, af: Af) -> str:
    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    return id


@pytest.fixture
def session(shop: Path, idle: str) -> str:
    from agent_farm.paths import FarmPaths

    return FarmPaths(shop).session(idle)


def opened(visit: Visit, id: str) -> Visit:
    visit.open(f"builder/{id}")
    visit.page.wait_for_selector("#terminal .xterm-rows")
    wait_until(lambda: "demo" in terminal_text(visit), what="the terminal to show the builder's screen")
    return visit


def test_the_terminal_shows_the_pane_and_watching_types_nothing(
    idle: str, session: str, af: Af, visit: Open
) -> None:
    one = opened(visit(), idle)
    assert [line.split()[1] for line in clients()] == ["1"]  # tmux itself lets it only look
    one.page.click("#terminal")
    one.page.keyboard.type("rm -rf everything")
    one.page.keyboard.press("Enter")
    assert af("send", idle, "[[say:what came later]]").returncode == 0
    wait_until(lambda: "answer: what came later" in terminal_text(one), what="what came later")
    assert "rm -rf" not in screen_of(session)


def test_typing_on_request_reaches_the_pane(idle: str, session: str, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.click("#typing")
    one.page.wait_for_selector("text=keys go to the builder")
    one.page.keyboard.type("[[say:hello from the browser]]")
    wait_until(lambda: "[[say:hello from the browser]]" in screen_of(session), what="the keys to arrive")
    one.page.keyboard.press("Enter")
    wait_until(lambda: "answer: hello from the browser" in screen_of(session), what="the answer")
    wait_until(lambda: "answer: hello from the browser" in terminal_text(one), what="it to be shown")
    one.page.keyboard.press("F6")
    assert one.page.evaluate("document.activeElement.id") == "typing"
    one.page.keyboard.press("Enter")
    wait_until(lambda: [line.split()[1] for line in clients()] == ["1"], what="looking only again")


def test_a_dialog_is_answered_with_the_keys_of_a_phone(spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("[[ask:Delete them?]] [[say:so be it]]")
    assert af("wait", id, "--for", "waiting", "--timeout", "300").returncode == 0
    one = opened(visit(width=360, height=740, has_touch=True), id)
    one.page.tap("#typing")
    one.page.wait_for_selector("text=keys go to the builder")
    one.page.tap(".key-bar button:text-is('1')")
    one.page.wait_for_selector(".builder-head [data-state=idle]", timeout=60000)
    assert not one.has_sideways_scrolling()


def test_a_paste_arrives_whole_and_in_brackets(idle: str, session: str, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.click("#typing")
    one.page.wait_for_selector("text=keys go to the builder")
    text = "first line\nsecond ünïcødé line"
    one.page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.setData('text/plain', text);
            document.querySelector('.xterm textarea').dispatchEvent(
                new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
        }""",
        text,
    )
    # The demo agent shows a draft's first line and its size; the line break did not submit it.
    size = f"[2 lines, {len(text.encode())} bytes]"
    wait_until(lambda: f"first line {size}" in screen_of(session), what="the paste")


def test_the_pane_takes_the_size_of_the_window(idle: str, session: str, visit: Open) -> None:
    one = opened(visit(width=1280), idle)
    wide = int(tmux("display-message", "-p", "-t", f"={session}:", "#{window_width}"))
    one.page.set_viewport_size({"width": 700, "height": 800})

    def width() -> int:
        return int(tmux("display-message", "-p", "-t", f"={session}:", "#{window_width}"))

    wait_until(lambda: 40 < width() < wide - 40, what="the pane to become narrower")


def test_several_viewers_see_the_same_and_leave_no_client_behind(
    idle: str, session: str, visit: Open
) -> None:
    first, second = opened(visit(), idle), opened(visit(width=900), idle)
    assert len(clients()) == 2
    second.page.wait_for_selector("text=size of another terminal")
    first.page.click("#typing")
    first.page.wait_for_selector("text=keys go to the builder")
    first.page.keyboard.type("seen by all")
    for one in (first, second):
        wait_until(lambda one=one: "seen by all" in terminal_text(one), what="both to show it")
    first.open("")
    wait_until(lambda: len(clients()) == 1, what="the first client to go")
    second.page.close()
    wait_until(lambda: clients() == [], what="the second client to go")


def test_scrollback_is_read_without_disturbing_anybody(idle: str, session: str, af: Af, visit: Open) -> None:
    lines = "\n".join(f"earlier line {number}" for number in range(150))
    assert af("send", idle, f"[[say:{lines}]]").returncode == 0
    one = opened(visit(), idle)
    wait_until(lambda: "earlier line 149" in terminal_text(one), what="the newest lines")
    assert "earlier line 20 " not in terminal_text(one)
    one.page.click("#scrollback")
    one.page.wait_for_selector("#history .xterm-rows")
    history = "#history .xterm-rows"

    def shown() -> str:
        return str(one.page.inner_text(history)).replace("\xa0", " ")

    wait_until(lambda: "earlier line" in shown(), what="the history")
    box = one.page.locator("#history").bounding_box()
    assert box is not None
    one.page.mouse.move(box["x"] + 200, box["y"] + 100)
    for _ in range(12):
        one.page.mouse.wheel(0, -600)
    wait_until(lambda: "earlier line 5" in shown(), what="older lines")
    assert tmux("display-message", "-p", "-t", f"={session}:", "#{pane_in_mode}") == "0"
    one.page.click("#scrollback")
    one.page.wait_for_selector("#history", state="detached")


def test_colours_and_escape_sequences_stay_in_the_terminal(idle: str, session: str, visit: Open) -> None:
    """Colour is colour; a title, a clipboard and markup do nothing to the page."""
    text = (
        "\x1b[38;2;250;20;20mRED\x1b[0m \x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07<b>bold</b> <script>x</script>"
    )
    one = opened(visit(), idle)
    tty = tmux("display-message", "-p", "-t", f"={session}:", "#{pane_tty}")
    with open(tty, "w") as pane:
        pane.write("\r\n" + text + "\r\n")
    wait_until(lambda: "RED" in terminal_text(one), what="the text")
    assert "<b>bold</b> <script>x</script>" in terminal_text(one)
    red = one.page.locator("#terminal .xterm-rows span", has_text="RED").first
    colour = red.evaluate("one => getComputedStyle(one).color")
    assert colour == "rgb(250, 20, 20)"
    assert "owned" not in one.page.title()


def test_the_send_box_says_what_became_of_the_message(idle: str, session: str, af: Af, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.fill("#message", "[[say:got it]]")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("output[data-outcome=submitted]", timeout=60000)
    assert "confirmed by the runtime" in one.page.inner_text("output")
    wait_until(lambda: "answer: got it" in terminal_text(one), what="the answer")
    assert af("stop", idle).returncode == 0
    one.page.wait_for_selector(".builder-head [data-state=stopped]")
    one.page.fill("#message", "are you there?")
    one.page.click(".send button")
    one.page.wait_for_selector("output[data-outcome=held]")
    assert "its runtime has ended (stopped)" in one.page.inner_text("output")


def test_stop_and_resume_from_the_page(spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("Say it [[say:first words]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    one = opened(visit(), id)
    one.page.click("[data-action=stop]")
    one.page.wait_for_selector(".builder-head [data-state=stopped]")
    one.page.wait_for_selector("text=has no tmux session")
    one.page.click("[data-action=resume]")
    one.page.wait_for_selector(".builder-head [data-state=idle]", timeout=60000)
    wait_until(lambda: "demo" in terminal_text(one), what="the new terminal")
    assert not one.page.is_visible(".terminal-ended")


def test_prune_is_refused_with_the_evidence_and_keeps_everything(
    shop: Path, spawn: Spawn, af: Af, visit: Open
) -> None:
    id = spawn("Write it [[write:notes.txt]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    worktree = shop / ".builders" / id
    (worktree / "loose.txt").write_text("nowhere else\n")
    one = opened(visit(), id)
    one.expect("409")
    one.page.click("[data-action=prune]")
    one.page.wait_for_selector("dialog >> text=it is still running (idle)")
    one.page.check("[name=stop]")
    one.page.wait_for_selector("dialog >> text=loose.txt", timeout=60000)
    assert one.page.is_disabled("dialog .danger:text-is('Prune')")
    said = af("prune", "--stop", id)
    assert said.returncode == 4
    shown = one.page.inner_text("dialog .error")
    for line in said.stderr.splitlines():
        assert line.strip().removeprefix("error: ") in shown
    assert (worktree / "loose.txt").exists()
    one.page.check("[name=discard_changes]")
    one.page.check("[name=discard_commits]")
    one.page.wait_for_selector("dialog >> text=It can be removed")
    assert af("status", id, "--json").stdout.count('"idle"')  # nothing has happened yet
    one.page.click("dialog .danger:text-is('Prune')")
    one.page.wait_for_selector(".empty h1")
    assert not worktree.exists()
    one.open("removed")
    one.page.click(f'[aria-label="Restore {id}"]')
    one.page.wait_for_selector(".builder-head [data-state=stopped]", timeout=60000)
    assert (worktree / "loose.txt").read_text() == "nowhere else\n"


def test_merge_lands_the_work(shop: Path, spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("Write it [[write:landed.txt]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    one = opened(visit(), id)
    one.page.click("[data-action=merge]")
    one.page.click("dialog .primary")
    one.page.wait_for_selector("text=landed on main")
    assert (shop / "landed.txt").exists()
    assert git(shop, "status", "--short") == ""


def test_diff_timeline_and_prompt(shop: Path, spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("Write it [[write:new.txt]]", "--files", "src/auth.py")
    assert af("wait", id, "--timeout", "300").returncode == 0
    worktree = shop / ".builders" / id
    (worktree / "src/auth.py").write_text("def login() -> None:\n    print('<script>alert(1)</script>')\n")
    (worktree / "un tracked.txt").write_text("x\n")
    one = visit()
    one.open(f"builder/{id}/diff")
    one.page.wait_for_selector(".file")
    assert sorted(one.page.locator(".file .name").all_inner_texts()) == [
        "new.txt",
        "src/auth.py",
        "un tracked.txt",
    ]
    assert "3 files against main" in one.page.inner_text(".diff-head")
    assert "print('<script>alert(1)</script>')" in one.page.inner_text(".code .plus:has-text('script')")
    one.page.check("text=only what is committed")
    wait_until(lambda: one.page.locator(".file .name").all_inner_texts() == ["new.txt"], what="one file")
    one.page.keyboard.press("Escape")
    one.open(f"builder/{id}/timeline")
    one.page.wait_for_selector(".timeline li")
    assert "UserPromptSubmit" in one.page.inner_text(".timeline")
    one.open(f"builder/{id}/prompt")
    one.page.wait_for_selector(".prose")
    assert "Relevant files: src/auth.py" in one.page.inner_text(".panel")


@pytest.mark.parametrize(
    "text",
    [
        "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
        "\x1b[2J\x1b]0;owned\x07 red \x1b[31malert",
        "left \u202e right ' onmouseover='document.title=1",
    ],
    ids=["markup", "escapes", "direction"],
)
def test_a_hostile_task_is_text(text: str, spawn: Spawn, visit: Open) -> None:
    id = spawn(f"{text} [[ask:{text}]]")
    one = visit()
    one.page.wait_for_selector(".needs a", timeout=60000)
    for where in ("", f"builder/{id}", f"builder/{id}/timeline", f"builder/{id}/prompt"):
        one.open(where)
        one.page.wait_for_selector(".builder, .builder-head")
        one.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert one.page.locator("main script, main img").count() == 0
        assert "owned" not in one.page.title()
        shown = one.page.inner_text("main")
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    if text.startswith("<script>"):
        assert "<script>document.title='owned'</script>" in one.page.inner_text("h1")

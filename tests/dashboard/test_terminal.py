"""A builder's terminal in a real browser: watched, typed into, and left as it was."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

from tests.conftest import Af
from tests.dashboard.browser import Visit
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

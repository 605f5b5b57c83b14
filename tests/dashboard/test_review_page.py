"""The review in a real browser: read, commented, decided and undone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.conftest import report
from tests.dashboard.test_board import serious_findings
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

Spawn = Callable[..., str]
Open = Callable[..., Visit]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BODY = "".join(f"def number_{line}(): return {line}\n" for line in range(1, 31))


def worked(shop: Path, spawn: Spawn, af: Af) -> str:
    id = spawn("Work [[say:done]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    tree = shop / ".builders" / id
    (tree / "dot.png").write_bytes(PIXEL)
    git(tree, "add", "dot.png")
    commit_files(tree, {"code.py": BODY, "<img src=x onerror=alert(1)>.txt": "<b>bold</b>\n"}, "work")
    return id


def kept(af: Af, id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(af("review", id, "--json").stdout)["items"][0]
    return found


def test_a_result_is_read_commented_and_rejected(shop: Path, spawn: Spawn, af: Af, visit: Open) -> None:
    id = worked(shop, spawn, af)
    one = visit()
    one.open("review")
    one.page.click(f"a[href='#/review/{id}']")
    one.page.wait_for_selector("text=No check has run on it.")
    card = one.page.locator("details.file", has_text="code.py")
    assert card.locator("span.k-keyword", has_text="def").count() == 30
    one.page.wait_for_selector("details.file img[src^='data:image/png']", timeout=120_000)
    assert one.page.locator("details.file b").count() == 0
    line, other = (card.get_by_label(f"Comment on line {number}", exact=True) for number in (2, 3))
    for place, found, text in (
        (line, "", "Why a function each?"),
        (other, "", "And why"),
        (line, "Why a function each?", "Why a function each?"),
    ):
        place.click()
        assert one.page.input_value("dialog textarea") == found
        one.page.fill("dialog textarea", text)
        one.page.keyboard.press("Escape")
    line.click()
    one.page.click("dialog [type=submit]")
    one.page.wait_for_selector("tr.said >> text=[draft]")
    one.page.click("[data-action=send]")
    one.page.click("dialog .primary")
    one.page.wait_for_selector("tr.said >> text=[open]", timeout=60000)
    card.get_by_role("button", name="Mark as read", exact=True).first.click()
    wait_until(lambda: 0 < kept(af, id)["unread"] < 10, what="the file to be read")
    one.page.wait_for_selector("details.file >> text=code.py", state="detached")
    one.page.click("[data-action=undo]")
    one.page.wait_for_selector("details.file >> text=code.py")
    assert af("wait", id, "--timeout", "300").returncode == 0
    one.page.click("[data-action=reject]")
    one.page.fill("dialog textarea", "One function is enough")
    one.page.click("dialog [type=submit]")
    one.page.wait_for_selector("strong:text-is('rejected')", timeout=60000)
    assert kept(af, id)["decision"]["reason"] == "One function is enough"


def test_where_it_is_wide_sides_stand_beside_each_other_and_conflicts_are_in_view(
    shop: Path, spawn: Spawn, af: Af, visit: Open
) -> None:
    id = worked(shop, spawn, af)
    commit_files(shop / ".builders" / id, {"README.md": "# theirs\n"}, "a title")
    commit_files(shop, {"README.md": "# ours\n"}, "another title")
    one = visit(width=1500)
    one.open(f"review/{id}")
    one.page.wait_for_selector("section:has-text('README.md') >> text=<<<<<<<", timeout=60000)
    card = one.page.locator("details.file", has_text="README.md")
    cells = card.locator("tr", has_text="theirs").locator("td")
    cells.last.wait_for()
    assert cells.all_text_contents() == ["1", "-# shop", "1", "+# theirs"]
    assert serious_findings(one) == []
    cells.get_by_label("Comment on line 1", exact=True).first.click()
    one.page.wait_for_selector("dialog >> text=Comment on README.md:1")
    one.page.keyboard.press("Escape")
    one.page.set_viewport_size({"width": 800, "height": 800})
    one.page.wait_for_selector("table.beside", state="detached")
    assert card.locator("tr", has_text="theirs").locator("td").all_text_contents() == ["", "1", "+# theirs"]


def test_the_list_fits_a_phone_and_a_builder_leads_to_its_result(
    shop: Path, spawn: Spawn, af: Af, visit: Open
) -> None:
    id, other = worked(shop, spawn, af), worked(shop, spawn, af)
    one = visit(width=390, height=844)
    one.open("review")
    row = one.page.locator("tr", has=one.page.locator(f"a[href='#/review/{id}']"))
    row.get_by_text("shares files with").wait_for()
    assert not row.evaluate("row => row.closest('.scroll').scrollWidth > row.closest('.scroll').clientWidth")
    one.open(f"builder/{other}")
    one.page.click("a.button:text-is('Review')")
    one.page.wait_for_selector("text=· shares files with")
    one.page.wait_for_selector("tr.hunk >> text=@ 1")


def test_the_keyboard_keeps_its_place_while_things_change(
    shop: Path, spawn: Spawn, af: Af, visit: Open
) -> None:
    id, other = worked(shop, spawn, af), worked(shop, spawn, af)
    one = visit()
    here = "document.activeElement.closest('li, tr, details')?.textContent"
    for where, item, link in (
        ("review", f"tr:has-text('{id}')", f"a[href='#/review/{id}']"),
        ("farms", "[data-farm]", f"li a[href='#/builder/{id}']"),
    ):
        one.open(where)
        one.page.focus(link)
        commit_files(shop / ".builders" / other, {f"{where}.txt": "x\n"}, "more")
        report(shop, other, "waiting", f"Look at {where}?")
        one.page.wait_for_selector(f"{item} >> {link}")
        if where == "farms":
            one.page.wait_for_selector("li >> text=Look at farms?", timeout=60000)
        else:
            one.page.wait_for_selector(f"tr:has-text('{other}') >> text=waiting", timeout=60000)
        assert one.page.evaluate(f'document.activeElement.matches("{link}")'), where
    one.open(f"review/{id}")
    first, second = (one.page.locator("details.file").nth(at) for at in range(2))
    name = second.locator(".name").inner_text()
    first.get_by_role("button", name="Mark as read").first.press("Enter")
    wait_until(lambda: name in (one.page.evaluate(here) or ""), timeout=60, what="the focus on the next file")


def test_approving_lands_it(shop: Path, spawn: Spawn, af: Af, visit: Open) -> None:
    id = worked(shop, spawn, af)
    commit_files(shop, {"agent-farm.toml": '[check]\ncommand = "true"\n'}, "checks")
    one = visit()
    one.expect("409")
    one.expect("403")
    one.open(f"review/{id}")
    one.page.click("[data-action=approve]")
    one.page.click("dialog .primary")
    one.page.click("dialog >> text=Agree and approve")
    wait_until(lambda: "code.py" in git(shop, "ls-tree", "--name-only", "main"), what="it to land")
    one.open("review")
    one.page.wait_for_selector("text=Nothing waits")


def test_it_is_for_everybody(shop: Path, spawn: Spawn, af: Af, visit: Open) -> None:
    """Also on a phone, and for who cannot see it."""
    id = worked(shop, spawn, af)
    for dark, where in product((False, True), ("review", f"review/{id}")):
        one = visit(width=390, height=800, dark=dark)
        one.open(where)
        one.page.wait_for_selector(f"text={id}" if where == "review" else "details.file")
        assert not one.has_sideways_scrolling()
        assert serious_findings(one) == []

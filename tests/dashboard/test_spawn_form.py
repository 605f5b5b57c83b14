"""The spawn form: what it offers, where it says what is wrong, and what several come to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.stage import Dashboard
from tests.dashboard.test_board import serious_findings
from tests.gitrepo import git
from tests.waiting import wait_until

Open = Callable[..., Visit]
KINDS = ("task", "tasks", "issue", "project", "spec", "protocol", "shell")


def opened_form(visit: Visit, kind: str = "task") -> Visit:
    visit.open("spawn")
    visit.page.wait_for_selector("#spawn-name", state="attached")
    visit.page.wait_for_selector("#spawn-runtime option[value=demo]", state="attached")
    visit.page.check(f"[name=mode][value={kind}]")
    visit.page.select_option("#spawn-runtime", "demo")
    return visit


def shown_fields(visit: Visit, visible: str = "") -> list[str]:
    found: list[str] = visit.page.eval_on_selector_all(
        f"[data-field]{visible}",
        "all => all.filter(one => one.checkVisibility()).map(one => one.dataset.field)",
    )
    return found


def test_it_is_simple_at_first_and_has_whatever_spawn_takes(visit: Open, dashboard: Dashboard) -> None:
    one = opened_form(visit())
    assert shown_fields(one) == ["task", "runtime"]
    described = dashboard.get("/api/openapi.json?verb=spawn")["components"]["schemas"]["Spawn"]["properties"]
    found = set()
    for kind in KINDS:
        one.page.check(f"[name=mode][value={kind}]")
        one.page.evaluate("document.querySelector('details.more').open = true")
        found |= {kind, *shown_fields(one)}
        assert not one.has_sideways_scrolling(), kind
        assert serious_findings(one) == [], kind
    assert found == described.keys() - {"dry_run", "yes", "on"}  # buttons; and there is no fleet
    for name in ("copies", "base", "sparse"):
        assert one.page.inner_text(f"#spawn-{name}-help") == described[name]["description"]
    assert one.page.inner_text("[data-field=no_queue] label") == described["no_queue"]["description"]
    assert one.page.locator("#spawn-permissions option").all_inner_texts()[1:] == ["all", "ask", "edit"]


def test_what_is_set_under_more_is_asked_for(visit: Open, dashboard: Dashboard, shop: Path) -> None:
    git(shop, "branch", "older")
    one = opened_form(visit())
    one.page.fill("#spawn-task", "Fix it [[say:done]]")
    one.page.click("details.more summary")
    for name, text in {
        "name": "login-fix",
        "model": "small",
        "base": "older",
        "sparse": "src, codev",
    }.items():
        one.page.fill(f"#spawn-{name}", text)
    one.page.select_option("#spawn-permissions", "ask")
    one.page.check("#spawn-ephemeral")
    one.page.click("details.more summary")
    assert one.page.inner_text("details.more summary") == (
        "More Model · Permissions · Base · Sparse · Name · Ephemeral"
    )
    one.page.click("button[type=submit]")
    one.page.wait_for_selector(".builder-head", timeout=60000)
    (made,) = dashboard.get("/api/status")["builders"]
    asked = {name: made[name] for name in ("id", "model", "base", "permissions")}
    assert asked == {"id": "login-fix", "model": "small", "base": "older", "permissions": "ask"}
    worktree = shop / ".builders/login-fix"
    assert (worktree / "src/auth.py").exists()
    one.page.keyboard.press("n")
    one.page.wait_for_selector("#spawn-name", state="attached")
    values = {name: one.page.input_value(f"#spawn-{name}") for name in ("task", "name", "base", "model")}
    assert values == {"task": "", "name": "", "base": "", "model": "small"}


def test_each_of_several_is_shown_as_it_is_made_or_fails(
    visit: Open, dashboard: Dashboard, shop: Path
) -> None:
    git(shop, "branch", "feature")
    orders = [
        {"task": f"[[say:{name}]]", "branch": branch} for name, branch in (("a", "feature"), ("b", "feature"))
    ]
    text = "\n".join(map(json.dumps, [*orders, {"task": "[[say:c]]"}]))
    one = opened_form(visit(), "tasks")
    one.page.fill("#spawn-tasks", text)
    one.page.click("button[type=submit]")
    one.page.wait_for_selector("[role=status]:text-is('2 made, 1 failed.')", timeout=60000)
    made = {one["id"] for one in dashboard.get("/api/status")["builders"]}
    assert set(one.page.locator(".results a.mono").all_inner_texts()) == made
    assert len(made) == 2
    refused = one.page.inner_text(".results .error")
    assert "feature" in refused
    assert "af " not in refused
    assert one.page.input_value("#spawn-tasks") == text
    assert serious_findings(one) == []


def test_copies_are_made_and_the_form_is_ready_for_the_next(visit: Open, dashboard: Dashboard) -> None:
    one = opened_form(visit())
    one.page.fill("#spawn-task", "[[say:so]]")
    one.page.click("details.more summary")
    one.page.fill("#spawn-copies", "3")
    one.page.click("button:text-is('Show the plan')")
    wait_until(lambda: one.page.locator("[aria-label=Plan]").count() == 3, what="three plans")
    assert dashboard.get("/api/status")["builders"] == []
    one.page.click("button[type=submit]")
    one.page.wait_for_selector("[role=status]:text-is('3 made.')", timeout=60000)
    assert one.page.evaluate("document.activeElement.id") == "spawn-results"
    assert one.page.input_value("#spawn-task") == ""
    assert len(dashboard.get("/api/status")["builders"]) == 3


def test_what_is_wrong_is_said_at_its_field_in_the_words_of_the_page(visit: Open, shop: Path) -> None:
    git(shop, "branch", "feature")
    one = opened_form(visit())
    one.expect("400")
    one.expect("404")
    mistakes: dict[str, dict[str, str]] = {
        "task": {"task": ""},
        "files": {"task": "x", "files": "src/none.py"},
        "copies": {"task": "x", "copies": "101"},
        "base": {"task": "x", "base": "nosuch"},
        "branch": {"task": "x", "base": "main", "branch": "feature"},
        "after": {"task": "x", "after": "nobody"},
    }
    for field, values in mistakes.items():
        one.page.evaluate("document.querySelector('details.more').open = true")
        for name in ("task", "files", "copies", "base", "branch", "after"):
            one.page.fill(f"#spawn-{name}", values.get(name, ""))
        one.page.evaluate("document.querySelector('details.more').open = false")
        one.page.click("button[type=submit]")
        place = "base" if field == "branch" else field  # both are named; the first has it
        one.page.wait_for_selector(f"[data-field={place}] .error", timeout=60000)
        wait_until(
            lambda place=place: one.page.evaluate("document.activeElement.id") == f"spawn-{place}",  # type: ignore[misc]
            what=f"the focus at {place}",
        )
        said = one.page.inner_text("form .error")
        assert f"--{field}" not in said, said
        assert "af spawn" not in said, said
        assert one.page.input_value("#spawn-task") == values["task"]
    assert one.page.get_attribute("#spawn-after", "aria-invalid") == "true"
    one.page.fill("#spawn-after", "")
    assert one.page.locator("form .error").count() == 0


def test_what_was_typed_is_there_after_the_page_was_loaded_again(visit: Open) -> None:
    one = opened_form(visit(), "tasks")
    one.page.fill("#spawn-tasks", "One\n\nTwo")
    one.page.reload()
    one.page.wait_for_selector("#spawn-name", state="attached")
    assert one.page.is_checked("[name=mode][value=tasks]")
    assert one.page.input_value("#spawn-tasks") == "One\n\nTwo"


def test_an_error_offers_what_the_page_can_do(visit: Open, idle: str, af: Af) -> None:
    one = visit()
    one.page.wait_for_selector(f'[data-id="{idle}"]')
    texts = {
        f"af attach {idle}": f"Open the terminal of {idle}",
        f"af merge --here {idle}": f"Merge {idle} …",
        f"af stop {idle}": f"Stop {idle}",
        "af stop nobody": "In a terminal: af stop nobodyCopy",
        "af restore --list": "Removed builders",
        "af constructor": "In a terminal: af constructorCopy",
        f"af stop {idle} && rm -r x": f"In a terminal: af stop {idle} && rm -r xCopy",
        "af spawn --help": None,
        "af config agree --yes": "Read and agree …",
    }
    found = one.page.evaluate(
        "async hints => { const { nextStep } = await import('/static/js/hints.js');"
        " return Object.fromEntries(hints.map(hint => [hint, nextStep(hint)?.textContent ?? null])); }",
        list(texts),
    )
    assert found == texts
    one.page.evaluate(
        "async hint => { const { errorBox } = await import('/static/js/messages.js');"
        " document.querySelector('main').prepend(errorBox({ what: 'No', hint })); }",
        f"af merge --here {idle}",
    )
    one.page.click(f"main .error >> text=Merge {idle} …")
    assert one.page.is_checked("dialog [name=here]")


def test_several_tasks_are_refused_in_the_words_of_the_page_and_agreed_to_like_one(
    visit: Open, shop: Path, dashboard: Dashboard
) -> None:
    one = opened_form(visit(), "tasks")
    one.expect("400")
    one.expect("409")
    one.page.fill("#spawn-tasks", '{"task": "a", "issue": "1"}\n{"task": "b"}')
    one.page.click("button[type=submit]")
    one.page.wait_for_selector("form .error >> text=task 1: ")
    said = one.page.inner_text("form .error")
    assert "task text, “Issue”" in said
    assert "--" not in said
    (shop / "agent-farm.toml").write_text('[worktree]\nsetup = "touch ran"\n')
    one.page.fill("#spawn-tasks", "One\n\nTwo")
    one.page.click("button[type=submit]")
    one.page.wait_for_selector("form .error >> text=touch ran")
    one.page.click("text=Agree and spawn")
    one.page.wait_for_selector("text=2 made.", timeout=60000)
    assert len(dashboard.get("/api/status")["builders"]) == 2

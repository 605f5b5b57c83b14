"""One builder in a real browser: messages, what it changed, what lands, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.operations.diff import count_changes
from tests.conftest import Af
from tests.dashboard.browser import Visit
from tests.dashboard.stage import Dashboard
from tests.dashboard.test_terminal import opened, terminal_text
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

Spawn = Callable[..., str]
Open = Callable[..., Visit]


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
    one.page.click(".send [type=submit]")
    one.page.wait_for_selector("output[data-outcome=held]")
    assert "its runtime has ended (stopped)" in one.page.inner_text("output")


def test_a_dialog_is_answered_under_any_view(spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("[[ask:Delete them?]] [[say:so be it]]")
    assert af("wait", id, "--for", "waiting", "--timeout", "300").returncode == 0
    one = visit()
    one.open(f"builder/{id}/prompt")
    one.page.click(".answers button:text-is('1')")
    one.page.wait_for_selector("output[data-outcome=pressed]")
    one.page.wait_for_selector(".builder-head [data-state=idle]", timeout=60000)
    assert not one.page.is_visible(".answers")


def test_with_whom_it_conflicts_is_shown_line_by_line(spawn: Spawn, af: Af, visit: Open) -> None:
    ids = [spawn("--shell"), spawn("--shell")]
    assert af("wait", *ids, "--timeout", "300").returncode == 0
    for number, id in enumerate(ids):
        commit_files(Path(af("path", id).stdout.strip()), {"same.txt": f"{number}\n"}, "work")
    one = visit()
    one.open(f"builder/{ids[0]}/conflicts")
    one.page.wait_for_selector(f'.panel h2:has-text("{ids[1]}")', timeout=60000)
    shown = one.page.inner_text(".panel")
    assert "same.txt" in shown
    assert "<<<<<<<" in shown


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


def focused_action(visit: Visit) -> object:
    return visit.page.evaluate("document.activeElement.dataset.action")


def test_the_keyboard_comes_back_from_what_it_did(idle: str, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.focus("[data-action=merge]")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("dialog >> text=It has no commits that have not landed.")
    one.page.keyboard.press("Escape")
    one.page.wait_for_selector("dialog", state="detached")
    wait_until(lambda: focused_action(one) == "merge", timeout=60, what="the focus to be on merge")
    one.page.focus("[data-action=stop]")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".builder-head [data-state=stopped]", timeout=60000)
    wait_until(lambda: focused_action(one) == "resume", timeout=60, what="the focus to be on resume")


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
    one.page.click("dialog .error button:text-is('Stop it first')")
    assert one.page.is_checked("[name=stop]")
    assert one.page.evaluate("document.activeElement.name") == "stop"
    one.page.wait_for_selector("dialog >> text=loose.txt", timeout=60000)
    assert one.page.is_disabled("dialog .danger:text-is('Prune')")
    shown = one.page.inner_text("dialog .error")
    for line in af("prune", "--stop", id).stderr.splitlines():
        words = line.strip().removeprefix("error: ")
        assert words in shown or "--discard" in words or words.startswith("hint: "), words
    assert "--" not in shown  # boxes and buttons of the page instead of options of the terminal
    boxes = "“Discard changed and untracked files” and “Discard the commits that have not landed” remove it"
    assert boxes in shown
    assert one.page.inner_text("dialog .error button") == f"Merge {id} …"
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


def test_escape_in_a_dialog_closes_it_alone(idle: str, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.click("[data-action=merge]")
    one.page.wait_for_selector("dialog >> text=It has no commits that have not landed.")
    one.page.evaluate("document.activeElement.blur()")
    one.page.keyboard.press("Escape")
    one.page.wait_for_selector("dialog", state="detached")
    assert one.page.url.endswith(f"#/builder/{idle}")


def test_merge_lands_the_work(shop: Path, spawn: Spawn, af: Af, visit: Open) -> None:
    id = spawn("Write it [[write:landed.txt]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    one = opened(visit(), id)
    one.page.click("[data-action=merge]")
    one.page.click("dialog .primary")
    one.page.wait_for_selector("text=landed on main")
    assert (shop / "landed.txt").exists()
    assert git(shop, "status", "--short") == ""
    one.page.click("[data-action=merge]")
    one.page.check("dialog [name=prune]")
    one.page.click("dialog .primary")
    one.page.wait_for_selector(f"text={id} removed")
    assert not (shop / ".builders" / id).exists()


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
        assert one.page.title() != "owned"  # the task may be part of it, as text
        shown = one.page.inner_text("main")
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    if text.startswith("<script>"):
        assert "<script>document.title='owned'</script>" in one.page.inner_text("h1")


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
    answer = dashboard.get(f"/api/diff?id={idle}&most=2000000")
    assert (answer["truncated"], answer["files"], answer["added"]) == (True, 1, 80_000)
    assert answer["diff"].endswith("\n")
    text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n--- a/y\n+++ b/y\n+\n diff --git\n"
    assert count_changes(text) == (1, 2, 1)


def test_a_draft_is_kept(idle: str, visit: Open) -> None:
    one = opened(visit(), idle)
    one.page.fill("#message", "not sent yet")
    one.open("sessions")
    one.page.wait_for_selector("h1:text-is('Sessions')")
    one.open(f"builder/{idle}")
    one.page.wait_for_selector("#message")
    assert one.page.input_value("#message") == "not sent yet"


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
    assert "Uncommitted, so it does not land (1)" in said
    assert "left.txt" in said


def test_a_proof_is_shown_when_it_comes(shop: Path, idle: str, af: Af, visit: Open) -> None:
    """On the line of the board, and whole on the builder's own page; flags of the diff beside it."""
    commit_files(shop / ".builders" / idle, {"check.sh": "exit 0\n"})
    page = visit().page
    page.wait_for_selector(f'[data-id="{idle}"]')
    assert page.query_selector(".proof") is None
    assert af("config", "set", "check.command", "echo '<b>fine</b>'").returncode == 0
    assert af("check", idle).returncode == 1
    mark = page.wait_for_selector(f'[data-id="{idle}"] .proof.flagged')
    assert mark is not None
    assert mark.inner_text().startswith("!")
    page.goto(f"{page.url.partition('#')[0]}#/builder/{idle}")
    details = page.wait_for_selector(".proof-details")
    assert details is not None
    text = details.inner_text()
    for part in ("flagged", "main", "check: passed", ".log", "exit-forced · check.sh:1", "tree "):
        assert part in text
    commit_files(shop / ".builders" / idle, {"more.txt": "x\n"})
    page.wait_for_selector(".proof-details .proof.stale", timeout=120_000)

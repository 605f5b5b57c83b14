from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from tests.gitrepo import git
from tests.runtimes.orders import hook_names, make_order
from tests.runtimes.ptys import on_pty

HOSTILE = "-rf $(touch x) `touch y` 'a' \"b\"\n\ttab 🐝 \x1b[31m \\ %s\r\nend\n"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("prompt", ["Fix auth", HOSTILE, "x" * 1_000_000], ids=["plain", "hostile", "1MB"])
def test_the_prompt_arrives_byte_for_byte(repo: Path, tmp_path: Path, prompt: str) -> None:
    order = make_order(tmp_path, repo, prompt=prompt)
    with on_pty(get_adapter("demo").interactive(order)) as demo:
        demo.wait_for(f"prompt sha256 {sha(prompt)} bytes {len(prompt.encode())}")
    assert not (repo / "x").exists()


def test_a_turn_edits_commits_and_ends_idle(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / ".gitconfig").write_text("")  # no identity
    order = make_order(tmp_path, repo, prompt="Fix auth")
    with on_pty(get_adapter("demo").interactive(order)) as demo:
        demo.wait_for("answer: done · message 1")
        demo.type(b"/exit\r")
        assert demo.end() == 0
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "log", "-1", "--format=%s").startswith("Demo work on ")
    assert hook_names(order) == ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]


def test_follow_up_messages_arrive_byte_for_byte(repo: Path, tmp_path: Path) -> None:
    message = "two\nlines\t$(x) 'q' 🐝\n" * 3000
    with on_pty(get_adapter("demo").interactive(make_order(tmp_path, repo))) as demo:
        demo.wait_for("demo> ")
        demo.paste(message)
        demo.wait_for("[6001 lines")
        demo.type(b"\r")
        demo.wait_for(f"prompt sha256 {sha(message)} bytes {len(message.encode())}")


def test_it_writes_the_lines_it_is_asked_for_and_adds_one_when_asked(repo: Path, tmp_path: Path) -> None:
    task = "Write three lines about git worktrees into worktrees.md"
    with on_pty(get_adapter("demo").interactive(make_order(tmp_path, repo, prompt=task))) as demo:
        demo.wait_for("answer: wrote 3 lines into worktrees.md, which has 3")
        demo.type(b"Add a fourth line\r")
        demo.wait_for("» Add a fourth line")
        demo.wait_for("answer: wrote 1 line into worktrees.md, which has 4")
    lines = [f"Line {number} about git worktrees" for number in (1, 2, 3, 4)]
    assert (repo / "worktrees.md").read_text().splitlines() == lines
    assert git(repo, "status", "--porcelain") == ""


def test_a_spec_says_which_lines(repo: Path, tmp_path: Path) -> None:
    (repo / "spec.md").write_text("## Outcome\n\nWrite two lines into notes/greeting.md.\n")
    order = make_order(tmp_path, repo, prompt="Implement the feature specified in spec.md.")
    with on_pty(get_adapter("demo").interactive(order)) as demo:
        demo.wait_for("answer: wrote 2 lines")
    assert (repo / "notes/greeting.md").read_text() == "Line 1\nLine 2\n"


def test_a_question_waits_until_it_is_answered(repo: Path, tmp_path: Path) -> None:
    order = make_order(tmp_path, repo, prompt="[[ask:May I?]] [[nocommit]]")
    with on_pty(get_adapter("demo").interactive(order)) as demo:
        demo.wait_for("demo? 1 yes")
        assert hook_names(order)[-1] == "PermissionRequest"
        demo.type(b"2")
        demo.wait_for("refused: May I?")
        demo.wait_for("answer: done")
    assert hook_names(order)[2:4] == ["PermissionRequest", "PostToolUse"]


def test_a_conversation_is_resumed_with_its_history(repo: Path, tmp_path: Path) -> None:
    adapter = get_adapter("demo")
    identity = adapter.new_conversation_id()
    first = make_order(tmp_path, repo, prompt="one", conversation_id=identity)
    with on_pty(adapter.interactive(first)) as demo:
        demo.wait_for("message 1")
        demo.type(b"\x04")
        demo.end()
    second = make_order(tmp_path, repo, prompt="two", conversation_id=identity, resume=True)
    with on_pty(adapter.interactive(second)) as demo:
        demo.wait_for(f"resumed conversation {identity} · 1 messages")
        demo.wait_for("message 2")


def test_ctrl_c_interrupts_a_turn_and_escape_does_so_silently(repo: Path, tmp_path: Path) -> None:
    order = make_order(tmp_path, repo, prompt="[[sleep:60]]")
    with on_pty(get_adapter("demo").interactive(order)) as demo:
        demo.wait_for("working for 60 s")
        demo.type(b"\x03")
        demo.wait_for("interrupted")
        demo.wait_for("demo> ")
        demo.type(b"[[sleep:60]]\r")
        demo.wait_for("working for 60 s", count=2)
        demo.type(b"\x1b")
        demo.wait_for("interrupted", count=2)
    assert hook_names(order).count("Stop") == 1


@pytest.mark.parametrize(("directive", "code"), [("[[exit:3]]", 3), ("[[crash]]", -9)])
def test_it_ends_as_it_is_told(repo: Path, tmp_path: Path, directive: str, code: int) -> None:
    with on_pty(get_adapter("demo").interactive(make_order(tmp_path, repo, prompt=directive))) as demo:
        assert demo.end() == code

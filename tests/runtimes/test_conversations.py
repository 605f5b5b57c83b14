"""What stays of a run in its runtime's private home."""

from __future__ import annotations

from pathlib import Path

from agent_farm.runtimes.conversations import keep_conversation
from tests.gitrepo import write_files


def test_the_conversation_stays_and_nothing_else_of_the_runtimes_own(tmp_path: Path) -> None:
    home = tmp_path / "private"
    names = [
        "claude/.claude.json",
        "claude/backups/b",
        "claude/projects/p/c.jsonl",
        "totals/t.json",
        "mine.txt",
    ]
    write_files(home, dict.fromkeys(names, "x"))
    write_files(tmp_path, {"outside/o.txt": "x"})
    (home / "claude" / "link").symlink_to(tmp_path / "outside")
    keep_conversation(home, ("claude/projects",))
    left = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert left == {"claude/projects/p/c.jsonl", "totals/t.json", "mine.txt"}
    assert (tmp_path / "outside" / "o.txt").exists()
    keep_conversation(home, ())
    assert (home / "mine.txt").exists()
    (home / "claude" / "projects").rename(tmp_path / "elsewhere")
    (home / "claude").rmdir()
    (home / "claude").symlink_to(tmp_path / "elsewhere")
    keep_conversation(home, ("claude/projects",))
    assert (tmp_path / "elsewhere" / "p" / "c.jsonl").exists()

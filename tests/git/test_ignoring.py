from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.git.checkout import main_checkout
from agent_farm.git.ignoring import exclude, ignored_files
from agent_farm.git.repository import find_repository
from tests.gitrepo import commit_files, git, write_files

OURS = ["/.builders/", "/.agent-farm/"]


def test_lines_are_added_once_and_nothing_else_is_touched(repo: Path) -> None:
    file = repo / ".git/info/exclude"
    file.write_text("mine")
    file.chmod(0o640)
    assert exclude(find_repository(repo), OURS) == OURS
    assert exclude(find_repository(repo), OURS) == []
    assert file.read_text() == "mine\n/.builders/\n/.agent-farm/\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_missing_and_a_linked_file(repo: Path, tmp_path: Path) -> None:
    file = repo / ".git/info/exclude"
    file.unlink()
    file.parent.rmdir()
    exclude(find_repository(repo), OURS[:1])
    file.rename(tmp_path / "shared")
    file.symlink_to(tmp_path / "shared")
    exclude(find_repository(repo), OURS)
    assert file.is_symlink()
    assert (tmp_path / "shared").read_text() == "/.builders/\n/.agent-farm/\n"


@pytest.fixture
def farm(repo: Path) -> Path:
    commit_files(repo, {".gitignore": ".env\nnode_modules/\n*.local\n-x\n", "tracked.local.md": "x"})
    exclude(find_repository(repo), OURS)
    git(repo, "worktree", "add", "-q", ".builders/x")
    files = [".env", "sub/.env", "node_modules/a/index.js", "config/a.local", "config/plain", "-x", "new.txt"]
    write_files(repo, dict.fromkeys([*files, ".builders/x/.env", ".agent-farm/runs/x/.env"], "1"))
    return repo


def test_only_ignored_files_that_match_are_found(farm: Path) -> None:
    patterns = ["# comment", "", ".env\r\n", "node_modules/", "config/  ", "new.txt", "tracked*", "-x"]
    wanted = ["-x", ".env", "config/a.local", "node_modules/", "sub/.env"]
    assert ignored_files(main_checkout(find_repository(farm)), patterns) == wanted
    assert ignored_files(main_checkout(find_repository(farm)), ["*"]) == wanted
    assert ignored_files(main_checkout(find_repository(farm)), [".env", "!sub/.env"]) == [".env"]
    assert ignored_files(main_checkout(find_repository(farm)), ["/sub/"]) == ["sub/.env"]
    assert ignored_files(main_checkout(find_repository(farm)), []) == []

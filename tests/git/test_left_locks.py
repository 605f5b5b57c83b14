"""Which locks a killed git has left, while others come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.git import left_locks as room
from agent_farm.git.checkout import Checkout
from agent_farm.git.left_locks import left_locks


@pytest.mark.parametrize("name", ["index.lock", "refs/heads/main.lock"])
def test_a_git_that_ends_while_it_is_looked_for_leaves_none(
    repo: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, own = repo / ".git" / name, Checkout(repo, repo / ".git", repo / ".git")

    def ends() -> list[object]:
        lock.unlink()
        return []

    def ends_and_another_begins() -> list[object]:
        lock.rename(lock.with_name("ended"))
        lock.touch()
        return []

    lock.touch()
    assert list(left_locks(own)) == [lock]
    for meanwhile in (ends_and_another_begins, ends):
        monkeypatch.setattr(room, "gits_at_work", meanwhile)
        assert list(left_locks(own)) == []

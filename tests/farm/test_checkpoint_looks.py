"""Checkpoints of several builders: who does nothing is read whole in turn, who does anything at once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from agent_farm.farm import checkpoint_looks
from agent_farm.farm.checkpoint_looks import checkpoint_all
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.panes import find_pane
from agent_farm.processes import written_below
from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until


@pytest.fixture
def read_whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The builders of which that was done, as it is done."""
    done, make = list[str](), checkpoint_looks.make_checkpoint

    def noted(farm: Farm, record: object, *given: object) -> str:
        done.append(record.id)  # type: ignore[attr-defined]
        return make(farm, record, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(checkpoint_looks, "make_checkpoint", noted)
    return done


def checkpointed(farm: Farm) -> dict[str, str]:
    records = farm.records()
    found = checkpoint_all(farm, records, records.ids)
    assert all(isinstance(one, str) for one in found.values()), found
    return {id: str(one) for id, one in found.items()}


def test_each_has_its_turn(spawn: Callable[..., Spawned], read_whole: list[str]) -> None:
    ids = {spawn("--shell").id for _ in range(3)}
    farm = open_farm(spawn("--shell").stop().repo)
    stopped = (farm.records().keys() - ids).pop()
    first = checkpointed(farm)
    assert sorted(read_whole) == sorted([*ids, stopped])
    for _ in range(4):
        assert checkpointed(farm) == first
    assert sorted(read_whole[4:]) == sorted([*ids, stopped]), "one at a time, the longest not read first"


def test_whatever_shows_is_read_at_once(
    spawn: Callable[..., Spawned],
    read_whole: list[str],
    monkeypatch: pytest.MonkeyPatch,
    af: Af,
) -> None:
    monkeypatch.setattr(checkpoint_looks, "_but_for_their_turn", lambda alike, before: alike)
    one = spawn("--shell")
    commit_files(one.worktree, {"d/f.txt": "begun\n"})
    farm = open_farm(one.repo)
    checkpointed(farm)

    def seen_again(what: str) -> str:
        assert read_whole == [one.id], f"{what} is seen"
        read_whole.clear()
        commit = checkpointed(farm)[one.id]
        assert read_whole == [], f"after {what} it is at rest"
        return commit

    seen_again("a new one")
    commit_files(one.worktree, {"d/g.txt": "1\n"})
    checkpointed(farm)
    seen_again("a commit")
    (one.worktree / "new.txt").write_text("new\n")
    checkpointed(farm)
    seen_again("a file at the top")
    git(one.repo, "update-ref", f"refs/heads/{one.branch}", "main")
    checkpointed(farm)
    seen_again("a branch that somebody has moved")
    assert af("send", one.id, "Go on").returncode == 0
    assert af("wait", one.id, "--timeout", "120").returncode == 0
    checkpointed(farm)
    seen_again("a turn")
    (one.worktree / "d/f.txt").write_text("by somebody else\n")
    before = checkpointed(farm)[one.id]
    assert read_whole == [], "this alone waits for its turn"
    monkeypatch.setattr(checkpoint_looks, "_but_for_their_turn", lambda alike, before: {})
    assert checkpointed(farm)[one.id] != before


def test_what_a_process_of_it_writes_is_read_at_once(
    spawn: Callable[..., Spawned],
    read_whole: list[str],
    monkeypatch: pytest.MonkeyPatch,
    af: Af,
) -> None:
    """Its runtime has ended, and a person types into the shell that is left."""
    monkeypatch.setattr(checkpoint_looks, "_but_for_their_turn", lambda alike, before: alike)
    one = spawn("--shell")
    commit_files(one.worktree, {"d/f.txt": "begun\n"})
    farm = open_farm(one.repo)
    found = find_pane(farm.records()[one.id])
    assert found.pane
    tmux = ["tmux", "-S", found.server.socket, "send-keys", "-t", found.pane.pane_id]
    subprocess.run([*tmux, "/exit", "Enter"], check=True)
    assert af("wait", one.id, "--for", "exited", "--timeout", "120").returncode == 0

    def at_rest() -> bool:
        read_whole.clear()
        checkpointed(farm)
        return not read_whole

    wait_until(at_rest, what="its shell's prompt")
    subprocess.run([*tmux, "printf typed >d/f.txt", "Enter"], check=True)
    wait_until(lambda: (one.worktree / "d/f.txt").read_text() == "typed", what="the file")
    commit = checkpointed(farm)[one.id]
    assert git(one.repo, "show", f"{commit}:work/d/f.txt") == "typed"


def test_what_processes_write_is_counted() -> None:
    inner = "read x; echo 1 >>/dev/null; echo done; read x"
    with subprocess.Popen(["sh", "-c", f"sh -c '{inner}'; read x"], stdin=-1, stdout=-1, text=True) as outer:
        assert outer.stdin
        assert outer.stdout
        wait_until(lambda: str(written_below([outer.pid])[outer.pid]).count(":") == 4, what="both of them")
        before = written_below([outer.pid])
        assert written_below([outer.pid]) == before
        outer.stdin.write("\n")
        outer.stdin.flush()
        assert outer.stdout.readline() == "done\n"
        assert written_below([outer.pid]) != before
        outer.kill()
    assert written_below([outer.pid]) == {outer.pid: None}, "nobody knows"

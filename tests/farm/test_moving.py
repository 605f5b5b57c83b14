"""`af import`, `af eject`, `af uninstall`: coming from other tools, and going without losing anything."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_farm.farm.farm import open_farm
from tests.conftest import Af
from tests.farm.stopping import halted, killed
from tests.gitrepo import git
from tests.waiting import wait_until


@pytest.fixture
def other(repo: Path, tmp_path: Path) -> Path:
    """A worktree in the form of workmux: beside the repository, on a branch of its own, with work in it."""
    place = tmp_path / "repo__worktrees/feat"
    git(repo, "worktree", "add", "-q", "-b", "me/feat", str(place))
    (place / "new").write_text("not committed")
    return place


def answer(af: Af, *args: str) -> dict[str, Any]:
    done = af(*args, "--json")
    assert done.returncode == 0, done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_can_be_taken_is_shown_and_nothing_is_done(repo: Path, af: Af, other: Path) -> None:
    git(repo, "worktree", "add", "-q", "--detach", str(other.parent / "loose"))
    git(repo, "worktree", "add", "-q", "-b", "kept", str(other.parent / "kept"))
    git(repo, "worktree", "lock", str(other.parent / "kept"))
    found = {one["branch"]: one for one in answer(af, "import")["found"]}
    assert found["me/feat"]["moves_to"] == str(repo / ".builders/feat")
    assert "git switch -c NAME" in found[None]["problem"]
    assert "git worktree unlock" in found["kept"]["problem"]
    done = af("import", "me/feat", "--runtime", "demo")
    assert (done.returncode, "Pass --yes" in done.stderr, other.is_dir()) == (2, True, True)
    assert f"would be moved to {repo}/.builders/feat" in done.stderr
    assert not (repo / ".builders").exists()


def test_a_worktree_becomes_a_builder_with_all_that_is_in_it(repo: Path, af: Af, other: Path) -> None:
    found = answer(af, "import", str(other), "--runtime", "demo", "--yes", "--task", "Finish it [[say:done]]")
    assert [one["id"] for one in found["imported"]] == ["feat"]
    assert not other.exists()
    assert (repo / ".builders/feat/new").read_text() == "not committed"
    record = open_farm(repo).require_exact("feat")
    assert (record.branch, record.state, record.new_branch) == ("me/feat", "stopped", False)
    assert af("resume", "feat").returncode == 0
    assert af("wait", "feat", "--timeout", "60").returncode == 0
    assert "Finish it" in Path(str(record.prompt_file)).read_text()
    assert af("prune", "--stop", "feat", "--discard-changes", "--discard-commits").returncode == 0
    assert git(repo, "branch", "--list", "me/feat")  # it is not af's to delete


def test_where_a_session_of_another_tool_is_nothing_is_moved(repo: Path, af: Af, other: Path) -> None:
    start = ["tmux", "new-session", "-d", "-s", "claudesquad_feat", "-c", str(other), "sleep 300"]
    subprocess.run(start, check=True, timeout=60)
    try:
        wait_until(lambda: "claude-squad" in json.dumps(answer(af, "import")), what="the session to be there")
        done = af("import", "me/feat", "--runtime", "demo", "--yes")
        assert done.returncode == 1
        assert "tmux kill-session -t =claudesquad_feat" in done.stderr
        assert other.is_dir()
    finally:
        subprocess.run(["tmux", "kill-session", "-t", "=claudesquad_feat"], check=False, timeout=60)


def test_an_ejected_builder_is_a_plain_worktree(repo: Path, af: Af, tmp_path: Path) -> None:
    id = answer(af, "spawn", "--runtime", "demo", "[[say:ready]]")["builder"]["id"]
    assert af("wait", id, "--timeout", "60").returncode == 0
    (repo / f".builders/{id}/mine").write_text("x")
    refused = af("eject", id)
    assert (refused.returncode, f"af eject --stop {id}" in refused.stderr) == (1, True)
    found = answer(af, "eject", "--stop", "--to", str(tmp_path / "out"), id)["ejected"][0]
    place = tmp_path / "out" / id
    assert (found["worktree"], found["branch"]) == (str(place), f"builder/{id}")
    assert (place / "mine").read_text() == "x"
    assert git(place, "branch", "--show-current") == f"builder/{id}"
    assert Path(found["prompt"]).read_text() == "[[say:ready]]"
    assert id not in open_farm(repo).registry.read().ids
    assert "problem" not in af("doctor").stdout


def test_a_name_that_a_spawn_took_meanwhile_is_not_taken_again(repo: Path, af: Af, other: Path) -> None:
    """git would move the worktree into the one that is there, and its record would go."""
    words = ("import", "me/feat", "--runtime", "demo", "--yes")
    with halted(repo, "builder-feat.lock", *words) as late:
        assert af("spawn", "--runtime", "demo", "--name", "feat", "x").returncode == 0
        late.send_signal(signal.SIGCONT)
        _, told = late.communicate(timeout=120)
    assert (late.returncode, "feat now belongs to another builder" in told) == (1, True)
    assert (other / "new").read_text() == "not committed"
    assert open_farm(repo).require_exact("feat").branch == "builder/feat"
    assert answer(af, *words)["imported"][0]["id"] != "feat"


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(1, 4))
def test_killed_at_any_step_either_is_carried_on_by_the_same_command(
    repo: Path, af: Af, other: Path, begin: int
) -> None:
    ways = {
        "import": ("import", "me/feat", "--runtime", "demo", "--yes"),
        "eject": ("eject", "--to", str(other.parent), "feat"),
    }
    for step in range(begin, 40, 3):
        for name, words in list(ways.items()):
            if killed(repo, step, *words).returncode == 0:
                ways.pop(name)  # it has fewer steps
            assert af("status").returncode == 0
            (found,) = [*other.parent.glob("*/new"), *repo.glob(".builders/*/new")]
            assert found.read_text() == "not committed"
            if bool(open_farm(repo).records()) != (name == "import"):
                assert af(*words).returncode == 0, step
        assert af("doctor", "--fix").returncode == 0
        if len(ways) < 2:
            return
    raise AssertionError("more than 40 steps")


def test_a_worktree_that_was_moved_while_git_was_not_told_is_ejected(
    repo: Path, af: Af, tmp_path: Path
) -> None:
    """As a git that is killed in `git worktree move` leaves it."""
    assert af("spawn", "--runtime", "demo", "--name", "one", "--shell").returncode == 0
    (repo / ".builders/one/mine").write_text("x")
    (tmp_path / "out").mkdir()
    (repo / ".builders/one").rename(tmp_path / "out/one")
    assert answer(af, "eject", "--stop", "--to", str(tmp_path / "out"), "one")["ejected"][0]["worktree"]
    assert git(tmp_path / "out/one", "status", "--porcelain") == "?? mine"
    (tmp_path / "out/one").rename(repo / ".builders/one")
    again = f"git -C {repo} worktree repair {repo}/.builders/one"
    assert again in af("doctor").stderr
    subprocess.run(again.split(), check=True, timeout=60)
    assert answer(af, "import")["found"][0]["problem"] is None


def test_one_that_stays_where_it_is_is_left_alone_by_doctor(repo: Path, af: Af) -> None:
    id = answer(af, "spawn", "--runtime", "demo", "[[say:ready]]")["builder"]["id"]
    assert af("eject", "--stop", id).returncode == 0
    done = af("doctor", "--fix")
    assert f"{repo}/.builders/{id} is a worktree that af did not make; it is left alone" in done.stdout
    assert id not in open_farm(repo).registry.read().ids
    assert [one["branch"] for one in answer(af, "import")["found"]] == [f"builder/{id}"]
    assert answer(af, "import", f"builder/{id}", "--runtime", "demo", "--yes")["imported"][0]["id"] == id


def test_uninstall_leaves_the_repository_as_it_was(repo: Path, af: Af) -> None:
    before = git(repo, "for-each-ref"), (repo / ".git/info/exclude").read_text()
    id = answer(af, "spawn", "--runtime", "demo", "[[say:ready]]")["builder"]["id"]
    assert af("wait", id, "--timeout", "60").returncode == 0
    refused = af("uninstall", "--yes")
    assert (refused.returncode, id in refused.stderr, "af eject --stop" in refused.stderr) == (4, True, True)
    assert refused.stderr.endswith("hint: af prune --stop\n")
    assert af("prune", "--stop", id, "--discard-changes", "--discard-commits").returncode == 0
    shown = af("uninstall")
    assert (shown.returncode, "goes  1 removed builder, for good" in shown.stderr) == (2, True)
    assert (repo / ".agent-farm").is_dir()
    done = af("uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert "hint: pip uninstall codev-agent-farm && rm -rf " in done.stderr
    assert not (repo / ".agent-farm").exists()
    assert not (repo / ".builders").exists()
    assert (git(repo, "for-each-ref"), (repo / ".git/info/exclude").read_text()) == before
    assert len(git(repo, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("place", [".agent-farm/kept", ".builders/kept", ".git", "link"])
def test_none_is_ejected_to_where_it_would_not_be_a_persons(repo: Path, af: Af, place: str) -> None:
    id = answer(af, "spawn", "--runtime", "demo", "[[say:ready]]")["builder"]["id"]
    (repo / "link").symlink_to(repo / ".agent-farm")
    done = af("eject", "--stop", id, "--to", place)
    assert done.returncode == 2, done.stderr
    assert "A worktree of yours cannot go to" in done.stderr
    assert (repo / ".builders" / id).is_dir()


def test_uninstall_deletes_no_worktree_of_a_person(repo: Path, af: Af) -> None:
    id = answer(af, "spawn", "--runtime", "demo", "[[say:ready]]")["builder"]["id"]
    assert af("eject", "--stop", id, "--to", "..").returncode == 0
    own = repo / ".agent-farm/mine"
    git(repo, "worktree", "move", str(repo.parent / id), str(own))
    (own / "precious").write_text("not committed")
    done = af("uninstall", "--yes")
    assert done.returncode == 4, done.stderr
    assert f"hint: git worktree move {own} {repo.parent}/mine" in done.stderr
    assert (own / "precious").read_text() == "not committed"


def test_uninstall_leaves_what_is_not_its_own(repo: Path, af: Af) -> None:
    git(repo, "worktree", "add", "-q", "-b", "codevs", str(repo / ".builders/spir-42"))
    done = af("uninstall", "--yes")
    assert (done.returncode, (repo / ".builders/spir-42").is_dir()) == (0, True)
    assert "stays  " in done.stdout

"""States of checkouts and branches, for many at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic

import psutil
import pytest

from agent_farm.errors import AgentFarmError, TimedOut
from agent_farm.git.asking import Asking
from agent_farm.git.changes import operation_of, tree_state
from agent_farm.git.checkout import Checkout, checkout_at, linked_tree
from agent_farm.git.divergence import ahead_behind, resolve_commits
from agent_farm.git.git_process import git_deadline, run_git
from agent_farm.git.nested import holds_repository, submodules_with_work
from agent_farm.git.repository import find_repository
from tests.gitrepo import commit_files, git, make_repo, write_files
from tests.waiting import wait_until


def at(path: Path) -> Checkout:
    return checkout_at(find_repository(path), path)


def test_a_clean_checkout(repo: Path) -> None:
    state = tree_state(at(repo))
    assert state.clean
    assert (state.head, state.branch) == (git(repo, "rev-parse", "HEAD"), "main")


def test_every_kind_of_change_is_seen_whatever_the_configuration(repo: Path) -> None:
    commit_files(
        repo, {name: f"{name}\n" * 9 for name in ("mod", "del", "ren", "staged", "spa ce\n", "mode")}
    )
    git(repo, "config", "status.showUntrackedFiles", "no")
    git(repo, "config", "status.relativePaths", "true")
    write_files(repo, {"mod": "x\n", "staged": "x\n", "spa ce\n": "x\n", "new/a": "x\n", "new/b": "x\n"})
    (repo / "del").unlink()
    (repo / "mode").chmod(0o755)
    git(repo, "add", "staged")
    git(repo, "mv", "ren", "renamed")
    state = tree_state(at(repo))
    assert sorted(state.dirty) == ["del", "mod", "mode", "ren", "renamed", "spa ce\n", "staged"]
    assert state.untracked == ("new/",)
    assert tree_state(at(repo), each_file=True).untracked == ("new/a", "new/b")
    assert not state.clean


def test_an_empty_repository_and_a_detached_head(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert tree_state(at(tmp_path / "empty")).head is None
    git(repo, "checkout", "-q", "--detach")
    assert tree_state(at(repo)).branch is None


def conflicting(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "other")
    commit_files(repo, {"README.md": "theirs\n"})
    git(repo, "checkout", "-q", "main")
    commit_files(repo, {"README.md": "ours\n"})


def begin_bisect(repo: Path) -> None:
    git(repo, "bisect", "start")


OPERATIONS: dict[str, Callable[[Path], object]] = {
    "merge": lambda repo: git(repo, "merge", "other", check=False),
    "rebase": lambda repo: git(repo, "rebase", "other", check=False),
    "cherry-pick": lambda repo: git(repo, "cherry-pick", "other", check=False),
    "revert": lambda repo: git(repo, "revert", "--no-edit", "HEAD~1", check=False),
    "bisect": begin_bisect,
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("linked", [False, True])
def test_an_operation_in_progress_is_named(repo: Path, name: str, linked: bool) -> None:
    conflicting(repo)
    commit_files(repo, {"README.md": "ours again\n"})
    where = repo
    if linked:
        git(repo, "worktree", "add", "-q", "-b", "linked", ".builders/x")
        where = repo / ".builders/x"
    assert operation_of(at(where)) is None
    OPERATIONS[name](where)
    state = tree_state(at(where))
    assert state.operation == name
    assert not state.clean


def test_a_git_that_takes_longer_than_its_deadline_is_ended(repo: Path) -> None:
    commit_files(repo, {".gitattributes": "slow filter=slow\n", "slow": "x\n"})
    git(repo, "config", "filter.slow.clean", f"echo $$ > {repo.parent}/pid; exec sleep 600")
    write_files(repo, {"slow": "y\n"})

    def begins() -> int:
        with git_deadline(3), pytest.raises(TimedOut):
            run_git(repo, "status", timeout=600)
        return int((repo.parent / "pid").read_text())

    child = begins()
    wait_until(lambda: not psutil.pid_exists(child), timeout=60, what="the end of git's own child")


def test_after_the_deadline_nothing_is_asked(repo: Path) -> None:
    with git_deadline(600), git_deadline(0):
        with git_deadline(600), pytest.raises(TimedOut, match="no time left for git status"):
            run_git(repo, "-c", "a.b=c", "status")
        seen = Asking({"": partial(run_git, repo, "status")}, until=monotonic() + 60).answers()
        assert seen == {}
    assert run_git(repo, "status")


def test_what_has_no_answer_holds_up_nobody() -> None:
    never, begun = Event(), monotonic()

    def refuse() -> str:
        raise AgentFarmError("no")

    questions = {"refused": refuse, "never": lambda: str(never.wait()), "yes": lambda: "yes"}
    assert Asking(questions, until=begun + 1, workers=2).answers() == {"yes": "yes"}
    never.set()
    assert Asking(questions, until=begun).answers() == {}


def test_status_takes_no_lock(repo: Path) -> None:
    index = repo / ".git/index"
    before = index.stat().st_ino
    write_files(repo, {"README.md": "# scratch\n"})
    assert tree_state(at(repo)).clean
    assert index.stat().st_ino == before


def test_how_far_branches_are_apart(repo: Path, tmp_path: Path) -> None:
    old = git(repo, "rev-parse", "HEAD")
    for name in ("a", "b"):
        git(repo, "checkout", "-q", "-b", name, old)
        commit_files(repo, {name: "1\n"})
    git(repo, "checkout", "-q", "main")
    commit_files(repo, {"m": "1\n"})
    commit_files(repo, {"m": "2\n"})
    git(repo, "checkout", "-q", "a")
    git(repo, "merge", "-q", "-m", "take main in", "main~1")
    git(repo, "checkout", "-q", "--orphan", "alone")
    git(repo, "commit", "-q", "-m", "root")
    repository = find_repository(repo)

    def apart(*pairs: tuple[str, str]) -> list[tuple[int, int] | None]:
        commits = resolve_commits(repository, {name for pair in pairs for name in pair})
        found = ahead_behind(repository, [(commits[one], commits[other]) for one, other in pairs])
        return [(one.ahead, one.behind) if one else None for one in found]

    names = [("a", "main"), ("b", "main"), ("main", "main"), (old, "main"), ("nope", "main"), ("b", "a")]
    assert apart(*names) == [(2, 1), (1, 2), (0, 0), (0, 2), None, (1, 3)]
    assert apart(("alone", "main"), ("b", "main")) == [(1, 3), (1, 2)]
    assert apart() == []


def test_a_repository_below_is_found(repo: Path) -> None:
    write_files(repo, {"plain/file": "x"})
    assert not holds_repository(repo / "plain")
    make_repo(repo / "plain/deep/b")
    assert holds_repository(repo / "plain")


def test_a_submodule_counts_when_it_has_work_of_its_own(repo: Path, tmp_path: Path) -> None:
    make_repo(tmp_path / "other")
    git(repo, "submodule", "add", "-q", str(tmp_path / "other"), "sub")
    git(repo, "commit", "-q", "-m", "sub")
    git(repo, "worktree", "add", "-q", ".builders/x")
    tree = repo / ".builders/x"
    whole = linked_tree(find_repository(repo), tree)
    assert submodules_with_work(whole) == {}
    git(tree, "submodule", "update", "-q", "--init")
    assert submodules_with_work(whole) == {}

    def reason() -> str:
        ((path, why),) = submodules_with_work(whole).items()
        assert path == "sub"
        return why

    hostile = tmp_path / "hostile"
    git(tree / "sub", "config", "core.fsmonitor", f"touch {hostile}; false")
    write_files(tree / "sub", {"README.md": "stashed\n"})
    hostile.unlink(missing_ok=True)
    assert reason() == "uncommitted changes"
    assert not hostile.exists()  # what the agent configured there runs nothing
    git(tree / "sub", "config", "--unset", "core.fsmonitor")
    git(tree / "sub", "stash")
    assert "on none of its remote branches" in reason()
    git(tree / "sub", "stash", "drop", "-q")
    assert submodules_with_work(whole) == {}
    commit_files(tree / "sub", {"new": "x\n"})
    assert reason() == "1 commit that is on none of its remote branches"
    git(tree / "sub", "push", "-q", "origin", "HEAD:refs/heads/work")
    assert submodules_with_work(whole) == {}
    make_repo(tree / "sub/inner")
    assert reason() == "uncommitted changes"
    (tree / "sub/.git").write_text("gitdir: /nowhere\n")
    assert "cannot be read" in reason()

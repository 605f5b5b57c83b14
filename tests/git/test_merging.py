"""A merge lands whole or changes nothing, and never touches what is uncommitted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agent_farm.git.checkout import linked_tree, main_checkout
from agent_farm.git.git_process import run_git
from agent_farm.git.landed import unlanded_commits
from agent_farm.git.merge_trees import merge_results
from agent_farm.git.merging import Merged, MergeRefused, Strategy, Work, merge_commit
from agent_farm.git.repository import find_repository
from agent_farm.git.showing import WorkRange, diff_commits, diff_worktree, start_of_work, starts_of_work
from agent_farm.shield import Shield
from tests.gitrepo import commit_files, git, write_files

STRATEGIES: list[Strategy] = ["merge", "squash", "rebase"]


@pytest.fixture
def forked(repo: Path) -> Path:
    """`work` has two commits, `main` one more; the main checkout is on `main`."""
    commit_files(repo, {"shared": "1\n2\n3\n4\n5\n6\n7\n8\n"})
    git(repo, "branch", "work")
    git(repo, "worktree", "add", "-q", ".builders/work", "work")
    git(repo, "config", "core.excludesFile", "")
    (repo / ".git/info/exclude").write_text("/.builders/\n")
    tree = repo / ".builders/work"
    commit_files(tree, {"new": "1\n"}, "one")
    git(tree, "config", "user.name", "Builder")
    commit_files(tree, {"shared": "1\n2\n3\n4\n5\n6\n7\nEIGHT\n"}, "two\n\nwith a body")
    git(tree, "config", "user.name", "Architect")
    commit_files(repo, {"shared": "ONE\n2\n3\n4\n5\n6\n7\n8\n"}, "on main")
    return repo


def land(repo: Path, strategy: Strategy, message: str | None = None) -> Merged:
    repository = find_repository(repo)
    tip = git(repo, "rev-parse", "work")
    work = Work(tip, "work", "Do it")
    with Shield() as shield:
        return merge_commit(repository, main_checkout(repository), work, strategy, message, shield=shield)


def everything(repo: Path) -> tuple[str, ...]:
    return (
        git(repo, "rev-parse", "HEAD"),
        git(repo, "status", "--porcelain", "--branch"),
        git(repo, "diff"),
        git(repo, "stash", "list"),
        git(repo, "symbolic-ref", "HEAD"),
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_branch_lands_and_counts_as_landed(forked: Path, strategy: Strategy) -> None:
    tip = git(forked, "rev-parse", "work")
    merged = land(forked, strategy)
    assert merged.after == git(forked, "rev-parse", "main") != merged.before
    assert (forked / "shared").read_text() == "ONE\n2\n3\n4\n5\n6\n7\nEIGHT\n"
    assert git(forked, "status", "--porcelain") == ""
    assert git(forked, "rev-parse", "work") == tip
    assert unlanded_commits(find_repository(forked), ["work"], ["main"]) == []
    again = land(forked, strategy)
    assert again.before == again.after == merged.after


def test_each_strategy_has_its_history(forked: Path) -> None:
    before = git(forked, "rev-parse", "main")
    land(forked, "merge", "said so")
    assert git(forked, "log", "-1", "--format=%s|%P").split("|") == [
        "said so",
        f"{before} {git(forked, 'rev-parse', 'work')}",
    ]
    git(forked, "reset", "-q", "--hard", before)
    land(forked, "squash")
    assert git(forked, "log", "-1", "--format=%P") == before
    assert git(forked, "log", "-1", "--format=%B") == "Do it\n\n* one\n* two"
    git(forked, "reset", "-q", "--hard", before)
    land(forked, "rebase")
    assert git(forked, "log", "-2", "--format=%s|%b|%an|%cn").splitlines() == [
        "two|with a body",
        "|Builder|Architect",
        "one||Test|Architect",
    ]
    assert git(forked, "rev-parse", "HEAD~2") == before


def test_a_fast_forward_needs_a_straight_line(forked: Path) -> None:
    before = everything(forked)
    with pytest.raises(MergeRefused, match="fast-forwarded"):
        land(forked, "ff")
    assert everything(forked) == before
    git(forked, "reset", "-q", "--hard", "main~1")
    assert land(forked, "ff").after == git(forked, "rev-parse", "work")


def test_picked_commits_are_not_rebased_twice(forked: Path) -> None:
    git(forked, "cherry-pick", "work~1")
    land(forked, "rebase")
    assert git(forked, "log", "--format=%s", "-4").splitlines()[:3] == ["two", "one", "on main"]


def test_a_rebase_loses_nothing_that_only_a_merge_commit_holds(forked: Path) -> None:
    tree, before = forked / ".builders/work", git(forked, "rev-parse", "main")
    git(tree, "merge", "-q", "--no-edit", "main")
    commit_files(forked, {"other": "later\n"}, "later")
    plain = land(forked, "rebase")
    assert (forked / "shared").read_text() == "ONE\n2\n3\n4\n5\n6\n7\nEIGHT\n"
    git(forked, "reset", "-q", "--hard", plain.before)
    write_files(tree, {"only": "in the merge\n"})
    git(tree, "add", "only")
    git(tree, "commit", "-q", "--amend", "--no-edit")
    with pytest.raises(MergeRefused, match="holds changes of its own") as refused:
        land(forked, "rebase")
    assert (refused.value.hint or "").startswith("git show --remerge-diff")
    assert git(forked, "rev-parse", "main") == plain.before != before
    land(forked, "merge")
    assert (forked / "only").exists()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_conflict_is_foreseen_and_changes_nothing(forked: Path, strategy: Strategy) -> None:
    commit_files(forked, {"shared": "1\n2\n3\n4\n5\n6\n7\nacht\n"})
    before = everything(forked)
    with pytest.raises(MergeRefused) as caught:
        land(forked, strategy)
    assert caught.value.evidence == ("shared",)
    assert everything(forked) == before


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_uncommitted_changes_stay_or_refuse(forked: Path, strategy: Strategy) -> None:
    git(forked, "config", "merge.autoStash", "true")
    write_files(forked, {"shared": "mine\n", "README.md": "mine\n"})
    before = everything(forked)
    with pytest.raises(MergeRefused) as caught:
        land(forked, strategy)
    assert caught.value.evidence == ("shared",)
    assert everything(forked) == before
    git(forked, "checkout", "-q", "shared")
    land(forked, strategy)
    assert git(forked, "status", "--porcelain") == "M README.md"


@pytest.mark.parametrize("ignored", [False, True])
def test_an_untracked_file_in_the_way_is_kept(forked: Path, ignored: bool) -> None:
    write_files(forked, {"new": "mine\n"})
    if ignored:
        (forked / ".git/info/exclude").write_text("/.builders/\nnew\n")
    before = everything(forked)
    with pytest.raises(MergeRefused):
        land(forked, "merge")
    assert everything(forked) == before
    assert (forked / "new").read_text() == "mine\n"


def test_an_operation_under_way_and_a_detached_head_refuse(forked: Path) -> None:
    (forked / ".git/MERGE_HEAD").write_text(git(forked, "rev-parse", "work") + "\n")
    with pytest.raises(MergeRefused, match="merge is in progress"):
        land(forked, "squash")
    (forked / ".git/MERGE_HEAD").unlink()
    git(forked, "checkout", "-q", "--detach")
    with pytest.raises(MergeRefused, match="on no branch"):
        land(forked, "merge")


def test_conflicts_of_many_pairs_are_foreseen_at_once(forked: Path) -> None:
    git(forked, "branch", "clash", "main")
    git(forked, "checkout", "-q", "clash")
    commit_files(forked, {"shared": "ONE\n2\n3\n4\n5\n6\n7\nacht\n", "new": "other\n"})
    git(forked, "checkout", "-q", "--orphan", "alone")
    git(forked, "rm", "-q", "-rf", ".")
    commit_files(forked, {"new": "alone\n"})
    git(forked, "checkout", "-q", "main")
    pairs = [("main", "work"), ("work", "clash"), ("nope", "work"), ("work", "alone"), ("main", "work")]
    found = [result and result.conflicts for result in merge_results(find_repository(forked), pairs)]
    assert found == [(), ("new", "shared"), None, ("new",), ()]


def test_a_diff_shows_commits_changes_and_new_files_and_leaves_the_index(forked: Path) -> None:
    tree = forked / ".builders/work"
    write_files(tree, {"README.md": "uncommitted\n", "sub/two\nlines": "untracked\n"})
    status, index = git(tree, "status", "--porcelain"), git(tree, "ls-files", "--stage", "--debug")
    repository, tip = find_repository(forked), git(tree, "rev-parse", "HEAD")
    start = start_of_work(repository, "main", tip, [])
    own = linked_tree(repository, tree)
    text = diff_worktree(own, start)
    for part in ("+EIGHT", "+uncommitted", "+untracked"):
        assert part in text
    assert "ONE" not in text
    assert git(tree, "status", "--porcelain") == status
    assert git(tree, "ls-files", "--stage", "--debug") == index
    assert "4 files changed" in diff_worktree(own, start, stat=True)
    assert "\033[" in diff_worktree(own, start, color=True)
    assert "2 files changed" in diff_commits(repository, start, tip, stat=True)


def test_the_builders_own_work_starts_where_it_began_or_took_its_base_in(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    began = commit_files(repo, {"main": "1\n"})
    git(repo, "switch", "-q", "-c", "work")
    tip = commit_files(repo, {"own": "1\n"})
    repository = find_repository(repo)

    def start(tip: str, *bases: str) -> str:
        return start_of_work(repository, began, tip, bases)

    assert start(tip) == start(tip, "main") == began
    git(repo, "branch", "-q", "-f", "main", first)
    assert start(tip, "main") == began  # the base was set back
    git(repo, "switch", "-q", "main")
    theirs = commit_files(repo, {"main": "rewritten\n"})
    git(repo, "switch", "-q", "work")
    git(repo, "rebase", "-q", "--onto", "main", began)
    rebased = git(repo, "rev-parse", "HEAD")
    assert start(rebased, "main") == theirs
    git(repo, "branch", "-q", "-f", "main", rebased)
    assert start(rebased, "main") == first  # it has landed


@pytest.mark.parametrize("seed", range(3))
def test_asked_of_many_at_once_it_starts_at_the_same_place(repo: Path, seed: int) -> None:
    draw = random.Random(seed)
    stream = ""
    for number in range(1, 15):
        parents = draw.sample(
            range(max(1, number - 4), number), min(number - 1, draw.choice([0, 1, 1, 1, 2, 2, 2]))
        )
        froms = [f"{word} :{one}\n" for word, one in zip(("from", "merge"), parents, strict=False)]
        reset = "" if parents else f"reset refs/heads/c{number}\n"
        who = f"committer a <a@example.invalid> {number} +0000\ndata 0\n"
        stream += f"{reset}commit refs/heads/c{number}\nmark :{number}\n{who}{''.join(froms)}\n"
    run_git(repo, "fast-import", "--quiet", input=stream.encode())
    repository = find_repository(repo)
    names = [f"c{number}" for number in range(1, 15)]
    commits = [git(repo, "rev-parse", name) for name in names]
    for _ in range(12):
        tips = draw.sample(commits[5:], 2)
        bases = tuple(draw.sample(names, 1))
        asked = [WorkRange(draw.choice(commits[:6]), tip, bases) for tip in tips]
        one_by_one = [start_of_work(repository, one.begun, one.tip, one.bases) for one in asked]
        assert starts_of_work(repository, asked) == one_by_one

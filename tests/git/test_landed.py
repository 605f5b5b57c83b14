"""A commit has landed when its change is on a target, and never by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.git.landed import have_landed, landed_plainly, unlanded_commits
from agent_farm.git.landing_targets import landing_targets
from agent_farm.git.patches import changed_paths, patch_ids
from agent_farm.git.repository import find_repository
from tests.gitrepo import commit_files, git, write_files

LINES = "".join(f"line {number}\n" for number in range(40))


@pytest.fixture
def branch(repo: Path) -> Path:
    """`work` is checked out, forked from a `main` that has one long file."""
    commit_files(repo, {"long.txt": LINES})
    git(repo, "checkout", "-q", "-b", "work")
    return repo


def unlanded(repo: Path, *tips: str, targets: tuple[str, ...] = ("main",)) -> list[str]:
    return [commit.subject for commit in unlanded_commits(find_repository(repo), tips or ("work",), targets)]


def on_main(repo: Path) -> None:
    git(repo, "checkout", "-q", "main")


def test_a_branch_without_commits_has_landed(branch: Path) -> None:
    assert unlanded(branch) == []


def test_new_commits_have_not_landed_and_are_named_newest_first(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    commit_files(branch, {"a": "2\n"}, "two")
    assert unlanded(branch) == ["two", "one"]


def test_a_merged_branch_has_landed(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    on_main(branch)
    git(branch, "merge", "-q", "--no-ff", "-m", "merge", "work")
    assert unlanded(branch) == []


def test_a_remote_tracking_branch_is_a_target(branch: Path) -> None:
    tip = commit_files(branch, {"a": "1\n"}, "one")
    on_main(branch)
    git(branch, "update-ref", "refs/remotes/origin/work", tip)
    git(branch, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/work")
    targets = landing_targets(find_repository(branch), "main")
    assert targets == ["main", "HEAD", "refs/remotes/origin/work"]
    assert unlanded(branch, targets=tuple(targets)) == []


def test_rebased_commits_have_landed(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    commit_files(branch, {"b": "1\n"}, "two")
    on_main(branch)
    commit_files(branch, {"c": "1\n"}, "other")
    git(branch, "cherry-pick", "main..work")
    assert unlanded(branch) == []


def test_a_pick_that_moved_down_the_file_has_landed(branch: Path) -> None:
    commit_files(branch, {"long.txt": LINES.replace("line 30\n", "line thirty\n")}, "one")
    on_main(branch)
    commit_files(branch, {"long.txt": "new top\n" * 5 + LINES}, "other")
    git(branch, "cherry-pick", "work")
    commit_files(branch, {"long.txt": "all else\n"}, "later")
    assert unlanded(branch) == []


def test_a_squash_merge_has_landed_even_after_the_target_went_on(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    commit_files(branch, {"a": "2\n", "b": "x\n"}, "two")
    on_main(branch)
    git(branch, "merge", "-q", "--squash", "work")
    git(branch, "commit", "-q", "-m", "squashed")
    assert unlanded(branch) == []
    commit_files(branch, {"a": "quite different\n"}, "later")
    assert unlanded(branch) == []


def test_a_squash_merge_among_other_changes_in_one_commit_has_landed(branch: Path) -> None:
    commit_files(branch, {"long.txt": LINES.replace("line 3\n", "three\n")}, "one")
    commit_files(branch, {"long.txt": LINES.replace("line 3\n", "3\n")}, "two")
    on_main(branch)
    changed = LINES.replace("line 3\n", "3\n").replace("line 33\n", "33\n")
    commit_files(branch, {"long.txt": changed, "more": "x\n"}, "squashed, with more")
    assert unlanded(branch) == []


def test_only_what_came_after_the_squash_is_left(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    commit_files(branch, {"a": "2\n"}, "two")
    on_main(branch)
    git(branch, "merge", "-q", "--squash", "work")
    git(branch, "commit", "-q", "-m", "squashed")
    git(branch, "checkout", "-q", "work")
    commit_files(branch, {"a": "3\n"}, "three")
    assert unlanded(branch) == ["three"]


def test_a_partially_picked_branch_keeps_the_rest(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    commit_files(branch, {"b": "1\n"}, "two")
    on_main(branch)
    commit_files(branch, {"c": "1\n"}, "other")
    git(branch, "cherry-pick", "work~1")
    assert unlanded(branch) == ["two"]


def test_a_landed_change_that_was_reverted_later_is_in_the_history(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    on_main(branch)
    commit_files(branch, {"c": "1\n"}, "other")
    git(branch, "cherry-pick", "work")
    git(branch, "revert", "--no-edit", "HEAD")
    assert unlanded(branch) == []


def test_a_pick_from_before_the_branch_took_main_in_has_landed(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    on_main(branch)
    commit_files(branch, {"c": "1\n"}, "other")
    git(branch, "cherry-pick", "work")
    git(branch, "checkout", "-q", "work")
    git(branch, "merge", "-q", "-m", "take main in", "main")
    assert unlanded(branch) == []


def test_a_merge_with_a_resolution_of_its_own_has_not_landed(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    on_main(branch)
    commit_files(branch, {"a": "2\n"}, "other")
    git(branch, "checkout", "-q", "work")
    git(branch, "merge", "-q", "main", check=False)
    write_files(branch, {"a": "worked out by hand\n"})
    git(branch, "commit", "-q", "-a", "-m", "resolved")
    assert unlanded(branch) == ["resolved", "one"]


def test_white_space_is_code(branch: Path) -> None:
    commit_files(branch, {"a.py": "if x:\n    y()\nz()\n"}, "one")
    on_main(branch)
    commit_files(branch, {"a.py": "if x:\n    y()\n    z()\n"}, "other")
    assert unlanded(branch) == ["one"]


def test_the_same_lines_at_another_place_are_another_change(branch: Path) -> None:
    block = "def test():\n    a()\n    b()\n    c()\n\n\n"
    on_main(branch)
    commit_files(branch, {"blocks.py": block * 4}, "blocks")
    git(branch, "branch", "-f", "work", "main")
    longer = block.replace("    b()\n", "    b()\n    new()\n")
    commit_files(branch, {"blocks.py": block + longer + block * 2}, "in the second")
    git(branch, "checkout", "-q", "work")
    commit_files(branch, {"blocks.py": block * 2 + longer + block}, "in the third")
    assert unlanded(branch) == ["in the third"]
    on_main(branch)
    git(branch, "cherry-pick", "work")
    assert unlanded(branch) == []


def test_work_undone_on_its_own_branch_has_not_landed(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    git(branch, "revert", "--no-edit", "HEAD")
    assert len(unlanded(branch)) == 2


def test_a_conflicting_branch_has_not_landed(branch: Path) -> None:
    commit_files(branch, {"long.txt": LINES.replace("line 3\n", "three\n")}, "one")
    on_main(branch)
    commit_files(branch, {"long.txt": LINES.replace("line 3\n", "drei\n")}, "other")
    assert unlanded(branch) == ["one"]


def test_a_merge_driver_that_drops_a_side_proves_nothing(branch: Path) -> None:
    on_main(branch)
    git(branch, "config", "merge.ours.driver", "true")
    commit_files(branch, {".gitattributes": "lock merge=ours\n", "lock": "0\n"})
    git(branch, "branch", "-f", "work", "main")
    git(branch, "checkout", "-q", "work")
    commit_files(branch, {"lock": "1\n"}, "one")
    on_main(branch)
    commit_files(branch, {"lock": "2\n"}, "other")
    assert unlanded(branch) == ["one"]


def test_empty_commits_have_not_landed(branch: Path) -> None:
    git(branch, "commit", "-q", "--allow-empty", "-m", "notes")
    on_main(branch)
    git(branch, "commit", "-q", "--allow-empty", "-m", "other notes")
    assert unlanded(branch) == ["notes"]


def test_binary_files_count_by_their_content(branch: Path) -> None:
    (branch / "picture").write_bytes(bytes(range(256)))
    git(branch, "add", "picture")
    git(branch, "commit", "-q", "-m", "one")
    on_main(branch)
    (branch / "picture").write_bytes(bytes(reversed(range(256))))
    git(branch, "add", "picture")
    git(branch, "commit", "-q", "-m", "other")
    assert unlanded(branch) == ["one"]
    (branch / "picture").write_bytes(bytes(range(256)))
    git(branch, "commit", "-q", "-a", "-m", "as there")
    git(branch, "rm", "-q", "picture")
    git(branch, "commit", "-q", "-m", "gone")
    git(branch, "checkout", "-q", "work")
    commit_files(branch, {"new": "x\n"}, "two")
    assert unlanded(branch) == ["two", "one"]


@pytest.mark.parametrize("change", ["mode", "link", "rename", "delete"])
def test_changes_without_text_are_told_apart(branch: Path, change: str) -> None:
    if change == "mode":
        (branch / "long.txt").chmod(0o755)
    elif change == "link":
        (branch / "link").symlink_to("long.txt")
    elif change == "rename":
        git(branch, "mv", "long.txt", "longer.txt")
    else:
        git(branch, "rm", "-q", "long.txt")
    git(branch, "add", "-A")
    git(branch, "commit", "-q", "-m", "one")
    on_main(branch)
    assert unlanded(branch) == ["one"]
    commit_files(branch, {"c": "1\n"}, "other")
    git(branch, "cherry-pick", "work")
    git(branch, "revert", "--no-edit", "HEAD")
    assert unlanded(branch) == []


def test_commits_of_a_detached_head_count_as_well(branch: Path) -> None:
    git(branch, "checkout", "-q", "--detach")
    tip = commit_files(branch, {"a": "1\n"}, "on nothing")
    on_main(branch)
    assert unlanded(branch, "work", tip) == ["on nothing"]


def test_a_branch_without_common_history_has_not_landed(branch: Path) -> None:
    git(branch, "checkout", "-q", "--orphan", "other")
    git(branch, "commit", "-q", "-m", "root")
    on_main(branch)
    assert unlanded(branch, "other") == ["root"]


def test_no_target_means_nothing_has_landed(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    assert unlanded(branch, targets=("gone",))[0] == "one"


ODD_NAMES = [["--stdin", "0" * 40, "ö"], [":(top)x"], ["*", "two\nlines"]]


@pytest.mark.parametrize("names", ODD_NAMES)
def test_a_file_name_that_is_an_option_or_a_pattern_or_two_lines(branch: Path, names: list[str]) -> None:
    for name in names:
        write_files(branch, {name: f"{name}\n"})
        git(branch, "add", "-A")
        git(branch, "commit", "-q", "-m", "one")
    on_main(branch)
    assert len(unlanded(branch)) == len(names)
    commit_files(branch, {"c": "1\n"}, "other")
    git(branch, "cherry-pick", "main..work")
    write_files(branch, dict.fromkeys(names, "more\n"))
    git(branch, "commit", "-q", "-a", "-m", "later")
    assert unlanded(branch) == []


def test_patches_without_text_have_an_identity_of_their_own(branch: Path) -> None:
    trees = [git(branch, "rev-parse", "HEAD^{tree}")]
    for content in (b"\0one", b"\0two"):
        (branch / "binary").write_bytes(content)
        git(branch, "add", "binary")
        trees.append(git(branch, "write-tree"))
    empty, one, two = trees
    repository = find_repository(branch)
    found = patch_ids(repository, [(empty, one), (empty, two), (one, two), (one, one)])
    assert len(set(found.values())) == len(found) == 3
    paths = changed_paths(repository, [(one, one), (empty, one), (one, two), (two, two)])
    assert {change: files for change, files in paths.items() if files} == {
        (empty, one): {"binary"},
        (one, two): {"binary"},
    }


def test_what_cannot_be_compared_is_neither_landed_nor_not(branch: Path) -> None:
    tip = commit_files(branch, {"long.txt": "work\n"}, "one")
    on_main(branch)
    main = commit_files(branch, {"long.txt": "main\n"}, "other")
    repository = find_repository(branch)
    assert have_landed(repository, [tip], [main], timeout=120) is False
    assert have_landed(repository, [main], [main], timeout=120) is True
    blob = git(branch, "rev-parse", f"{tip}:long.txt")
    (branch / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert have_landed(repository, [tip], [main], timeout=120) is None
    assert unlanded(branch) == ["one"]


def plainly(repo: Path, *branches: str) -> dict[str, bool]:
    repository = find_repository(repo)
    tips = {branch: [git(repo, "rev-parse", branch)] for branch in branches}
    return landed_plainly(repository, tips, [git(repo, "rev-parse", "main")], timeout=120)


def test_many_at_once_as_far_as_names_tell(branch: Path) -> None:
    """`work` touches what main touches since; `apart` does not; `none` has no commit; `merged` is on main."""
    for name in ("apart", "none", "merged"):
        git(branch, "branch", name)
    commit_files(branch, {"long.txt": "work\n"})
    git(branch, "checkout", "-q", "apart")
    commit_files(branch, {"apart.txt": "x\n"})
    git(branch, "checkout", "-q", "merged")
    commit_files(branch, {"merged.txt": "x\n"})
    assert plainly(branch, "work", "apart", "none", "merged") == {
        "work": False, "apart": False, "none": True, "merged": False,
    }  # fmt: skip
    on_main(branch)
    git(branch, "merge", "-q", "--no-ff", "-m", "merge", "merged")
    commit_files(branch, {"long.txt": "main\n"})
    assert plainly(branch, "work", "apart", "none", "merged") == {
        "apart": False, "none": True, "merged": True,
    }  # fmt: skip


def test_what_may_have_landed_in_another_form_is_left_to_a_comparison(branch: Path) -> None:
    commit_files(branch, {"a": "1\n"}, "one")
    commit_files(branch, {"a": "2\n", "b": "x\n"}, "two")
    git(branch, "checkout", "-q", "-b", "side", "main")
    git(branch, "merge", "-q", "--squash", "work")
    git(branch, "commit", "-q", "-m", "squashed")
    on_main(branch)
    git(branch, "merge", "-q", "--no-ff", "-m", "merge", "side")
    assert plainly(branch, "work") == {}
    git(branch, "checkout", "-q", "work")
    git(branch, "reset", "-q", "--hard", "main~1")
    git(branch, "merge", "-q", "--no-ff", "-m", "adds nothing", "side")
    assert plainly(branch, "work") == {}

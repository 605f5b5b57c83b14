"""`kill -9` of `af prune` and `af restore` at each step: the builder is whole, or removed and restorable."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm import shims
from tests.farm.conftest import Spawned
from tests.farm.contract import DISCARD, Full, Here, Spawn
from tests.farm.killing import kill_af
from tests.farm.stopping import killed
from tests.gitrepo import commit_files, git

pytestmark = pytest.mark.slow
WRITES = (" update-ref ", " symbolic-ref ", " commit-tree ", " config --local --add ", " --remove-section ")


@pytest.fixture
def full(spawn: Spawn, af: Af, repo: Path) -> Full:
    return Full.at(Here(af, repo), spawn)


def test_prune_killed_at_each_step(full: Full, repo: Path) -> None:
    whole, removed = full.prune_at_each_step(kill_af(repo), "/trash/")
    assert whole > 8
    assert removed > 5


def test_restore_killed_at_each_step(full: Full, repo: Path) -> None:
    whole, removed = full.restore_at_each_step(kill_af(repo), "registry.lock")
    assert whole > 3
    assert removed > 5


def writing_calls(builder: Spawned, tmp_path: Path, name: str, *flags: str) -> list[int]:
    """Which of the command's git calls change something; the builder is there before and after."""
    places = {which: tmp_path / f"counting-{which}" for which in ("prune", "restore")}
    for which, place in places.items():
        words = (which, builder.id, *(DISCARD if which == "prune" else ()))
        assert builder.af(*words, env=shims.make(place, "git", 0, ":")).returncode == 0
    found = [
        number
        for number, call in enumerate(shims.calls(places[name], "git"), 1)
        if any(word in f" {call} " for word in WRITES)
    ]
    assert found
    return found


@pytest.mark.parametrize("command", [("prune", *DISCARD), ("restore",)], ids=["prune", "restore"])
@pytest.mark.parametrize(
    "action",
    [
        pytest.param(shims.ENDS_ITS_PARENT, id="killed-and-its-git-goes-on"),
        pytest.param(shims.ENDS_BOTH, id="both-killed"),
    ],
)
def test_killed_while_git_runs(
    full: Full, af: Af, tmp_path: Path, command: tuple[str, ...], action: str
) -> None:
    builder = full.builder
    name, *flags = command
    numbers = writing_calls(builder, tmp_path, *command)
    if name == "restore":
        assert af("prune", builder.id, *DISCARD).returncode == 0
    for step in numbers:
        place = tmp_path / f"shim{step}"
        done = af(name, builder.id, *flags, env=shims.make(place, "git", step, action))
        assert done.returncode == -signal.SIGKILL, done
        shims.wait_for_orphans(place)
        what = f"{shims.calls(place, 'git')[step - 1]}\n"
        full.place.heal(what)
        if full.is_whole(what) == (name == "restore"):
            back = ("prune", builder.id, *DISCARD) if name == "restore" else ("restore", builder.id)
            assert af(*back).returncode == 0, what
    if name == "restore":
        full.bring_back("after the walk")
    assert full.is_whole("after the walk")


# Which call of git is killed, and the locks that git has made by then; of the last its words name the ref.
LOCKED = [
    ("prune", " --stdin", ("worktrees/{id}/HEAD.lock", "refs/heads/{branch}.lock")),
    ("prune", " refs/agent-farm/salvage/", ()),
    ("restore", " --create-reflog ", ("refs/heads/{branch}.lock",)),
    ("restore", " symbolic-ref ", ("worktrees/{id}/HEAD.lock",)),
]


@pytest.mark.parametrize(("command", "word", "locks"), LOCKED, ids=[word.strip() for _, word, _ in LOCKED])
def test_the_locks_of_the_git_that_was_killed_with_it_go(
    full: Full,
    af: Af,
    tmp_path: Path,
    command: str,
    word: str,
    locks: tuple[str, ...],
) -> None:
    builder = full.builder
    flags = DISCARD if command == "prune" else ()
    numbers = writing_calls(builder, tmp_path, command, *flags)
    counted = shims.calls(tmp_path / f"counting-{command}", "git")
    number = next(one for one in numbers if word in f" {counted[one - 1]} ")
    if command == "restore":
        assert af("prune", builder.id, *DISCARD).returncode == 0
    places = [builder.repo / ".git" / lock.format(id=builder.id, branch=builder.branch) for lock in locks]
    made = [f"  mkdir -p '{place.parent}'; : > '{place}'" for place in places] or [
        f"""  for word; do case $word in refs/*)
    mkdir -p "{builder.repo}/.git/${{word%/*}}"; : > "{builder.repo}/.git/$word.lock";; esac; done"""
    ]
    env = shims.make(tmp_path / "shim", "git", number, "\n".join([*made, shims.ENDS_BOTH]))
    assert af(command, builder.id, *flags, env=env).returncode == -signal.SIGKILL
    assert list((builder.repo / ".git").rglob("[!a]*.lock"))  # those of af's own begin with its name
    full.place.heal(word)
    assert not list((builder.repo / ".git").rglob("[!a]*.lock"))
    if not full.is_whole(word):
        full.bring_back(word)


def test_a_git_that_fails_leaves_the_builder_or_the_removal(full: Full, af: Af, tmp_path: Path) -> None:
    """Not a crash but an error, at each of git's calls: undone at once, or carried on by the doctor."""
    builder = full.builder
    for step in writing_calls(builder, tmp_path, "prune", *DISCARD):
        place = tmp_path / f"shim{step}"
        done = af("prune", builder.id, *DISCARD, env=shims.make(place, "git", step, shims.ENDS_ITSELF))
        what = f"{shims.calls(place, 'git')[step - 1]}\n"
        assert done.returncode in (0, 1, 4), what + done.stderr
        assert "bug" not in done.stderr, what + done.stderr
        full.place.heal(what)
        if not full.is_whole(what):
            full.bring_back(what)


def test_what_a_person_wrote_into_a_half_restored_builder_stays(full: Full, af: Af) -> None:
    builder, owned = full.builder, full.owned
    assert af("prune", builder.id, *DISCARD).returncode == 0
    assert killed(builder.repo, "--create-reflog", "restore", builder.id).returncode == -signal.SIGKILL
    (builder.worktree / "mine.txt").write_text("written by a person\n")
    tip = commit_files(builder.worktree, {"committed.txt": "by a person\n"})

    assert af("status").returncode == 0

    assert builder.state == "stopped"
    assert (builder.worktree / "mine.txt").read_text() == "written by a person\n"
    assert builder.git("rev-parse", "HEAD") == tip
    assert builder.tip == owned.head
    refused = af("prune", builder.id, *DISCARD)
    assert refused.returncode == 4
    assert "HEAD is detached" in refused.stderr


def test_a_branch_that_moved_on_is_not_taken_back(full: Full, af: Af) -> None:
    builder = full.builder
    assert af("prune", builder.id, *DISCARD).returncode == 0
    git(builder.repo, "branch", builder.branch, "main")
    refused = af("restore", builder.id)
    assert refused.returncode == 2
    assert "has moved on" in refused.stderr
    assert f"branch -m {builder.branch}" in refused.stderr
    git(builder.repo, "branch", "-m", builder.branch, f"{builder.branch}-later")
    full.bring_back("")
    assert af("prune", "--expire", "0").returncode == 0
    assert not list((builder.repo / ".agent-farm/trash").iterdir())


def test_a_branch_that_cannot_be_made_leaves_the_removal(full: Full, af: Af) -> None:
    builder = full.builder
    assert af("prune", builder.id, *DISCARD).returncode == 0
    git(builder.repo, "branch", f"{builder.branch}/below", "main")
    failed = af("restore", builder.id)
    assert failed.returncode == 1, failed
    assert not full.is_whole(failed.stderr)
    git(builder.repo, "branch", "-D", f"{builder.branch}/below")
    full.bring_back("")


def test_a_large_tree_that_is_still_being_deleted_is_no_obstacle(full: Full, af: Af) -> None:
    """Over two thousand files are deleted in the background, beside what is kept."""
    builder = full.builder
    for number in range(2100):
        (builder.worktree / "node_modules" / str(number % 7)).mkdir(parents=True, exist_ok=True)
        (builder.worktree / "node_modules" / str(number % 7) / f"{number}.js").touch()
    (builder.worktree / "node_modules/.package-lock.json").write_text("{}")
    with (builder.repo / ".git/info/exclude").open("a") as exclude:
        exclude.write("node_modules/\n")
    for _ in range(2):
        assert af("prune", builder.id, *DISCARD).returncode == 0
        (kept,) = (builder.repo / ".agent-farm/trash").glob(f"{builder.id}-*")
        left = kept / ".node_modules.1.deleting"  # as one finds it when the deletion was killed
        left.mkdir(exist_ok=True)
        (left / "file").touch()
        full.bring_back("a deletion is under way")
    full.place.heal("")

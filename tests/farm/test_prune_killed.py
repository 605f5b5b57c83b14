"""`kill -9` of `af prune` and `af restore` at each step: the builder is whole, or removed and restorable."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm import belongings, shims
from tests.farm.conftest import Spawned
from tests.farm.stopping import killed, number_of
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git

pytestmark = pytest.mark.slow
Spawn = Callable[..., Spawned]
WRITES = (" update-ref ", " symbolic-ref ", " commit-tree ", " config --local --add ", " --remove-section ")
DISCARD = ("--discard-changes", "--discard-commits")


@pytest.fixture
def full(spawn: Spawn) -> tuple[Spawned, belongings.Belongings]:
    """Of each kind of work one, a commit that only reflogs know, and a branch with an upstream."""
    builder = spawn("--shell").stop()
    builder.git("config", f"branch.{builder.branch}.remote", ".")
    builder.git("config", f"branch.{builder.branch}.merge", "refs/heads/main")
    commit_files(builder.worktree, {"amended-away.txt": "1"})
    builder.git("commit", "-q", "--amend", "-m", "another one")
    return builder, belongings.fill(builder.worktree)


def steps(repo: Path, first: str, *words: str) -> Iterator[subprocess.CompletedProcess[str]]:
    """The command, killed at the step that names `first`, at the next, …, until it gets to its end."""
    done = killed(repo, first, *words)
    yield done
    for step in range(number_of(done) + 1, 400):
        done = killed(repo, step, *words)
        if done.returncode == 0:
            return
        assert done.returncode == -signal.SIGKILL, done
        yield done
    raise AssertionError("the walk does not end")


def heal(af: Af, what: str) -> None:
    done = af("doctor", "--fix")
    assert done.returncode == 0, f"{what}{done.stdout}{done.stderr}"


def is_whole(builder: Spawned, owned: belongings.Belongings, what: str) -> bool:
    """Whole, or removed to the last trace of it."""
    found = traces(builder.repo)
    places = found.records, found.worktrees, found.registered, found.ports, found.runs
    if builder.id in found.records:
        assert all(place == {builder.id} for place in places), f"{what}{found}"
        assert builder.branch in found.branches
        now = belongings.read(builder.worktree)
        assert now.files.keys() == owned.files.keys(), what
        assert now == owned, what
        assert builder.state == "stopped", what
        followed = builder.git("rev-parse", "--abbrev-ref", "@{upstream}")
        assert followed == "main", what
        return True
    assert not any(places), f"{what}{found}"
    assert builder.branch not in found.branches, what
    return False


def bring_back(builder: Spawned, owned: belongings.Belongings, what: str) -> None:
    done = builder.af("restore", builder.id)
    assert done.returncode == 0, f"{what}{done.stderr}"
    assert is_whole(builder, owned, what)


def test_prune_killed_at_each_step(full: tuple[Spawned, belongings.Belongings], af: Af) -> None:
    builder, owned = full
    whole = removed = 0
    for done in steps(builder.repo, "/trash/", "prune", builder.id, *DISCARD):
        heal(af, done.stderr)
        if is_whole(builder, owned, done.stderr):
            whole += 1
        else:
            removed += 1
            bring_back(builder, owned, done.stderr)
    assert whole > 8
    assert removed > 5


def test_restore_killed_at_each_step(full: tuple[Spawned, belongings.Belongings], af: Af) -> None:
    builder, owned = full
    assert af("prune", builder.id, *DISCARD).returncode == 0
    whole = removed = 0
    for done in steps(builder.repo, "registry.lock", "restore", builder.id):
        heal(af, done.stderr)
        if is_whole(builder, owned, done.stderr):
            whole += 1
            assert af("prune", builder.id, *DISCARD).returncode == 0
        else:
            removed += 1
            assert builder.id in af("restore", "--list").stdout, done.stderr
    assert is_whole(builder, owned, "after the walk")
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
    full: tuple[Spawned, belongings.Belongings], af: Af, tmp_path: Path, command: tuple[str, ...], action: str
) -> None:
    builder, owned = full
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
        heal(af, what)
        if is_whole(builder, owned, what) == (name == "restore"):
            back = ("prune", builder.id, *DISCARD) if name == "restore" else ("restore", builder.id)
            assert af(*back).returncode == 0, what
    if name == "restore":
        bring_back(builder, owned, "after the walk")
    assert is_whole(builder, owned, "after the walk")


# Which call of git is killed, and the locks that git has made by then; of the last its words name the ref.
LOCKED = [
    ("prune", " --stdin", ("worktrees/{id}/HEAD.lock", "refs/heads/{branch}.lock")),
    ("prune", " refs/agent-farm/salvage/", ()),
    ("restore", " --create-reflog ", ("refs/heads/{branch}.lock",)),
    ("restore", " symbolic-ref ", ("worktrees/{id}/HEAD.lock",)),
]


@pytest.mark.parametrize(("command", "word", "locks"), LOCKED, ids=[word.strip() for _, word, _ in LOCKED])
def test_the_locks_of_the_git_that_was_killed_with_it_go(
    full: tuple[Spawned, belongings.Belongings],
    af: Af,
    tmp_path: Path,
    command: str,
    word: str,
    locks: tuple[str, ...],
) -> None:
    builder, owned = full
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
    heal(af, word)
    assert not list((builder.repo / ".git").rglob("[!a]*.lock"))
    if not is_whole(builder, owned, word):
        bring_back(builder, owned, word)


def test_a_git_that_fails_leaves_the_builder_or_the_removal(
    full: tuple[Spawned, belongings.Belongings], af: Af, tmp_path: Path
) -> None:
    """Not a crash but an error, at each of git's calls: undone at once, or carried on by the doctor."""
    builder, owned = full
    for step in writing_calls(builder, tmp_path, "prune", *DISCARD):
        place = tmp_path / f"shim{step}"
        done = af("prune", builder.id, *DISCARD, env=shims.make(place, "git", step, shims.ENDS_ITSELF))
        what = f"{shims.calls(place, 'git')[step - 1]}\n"
        assert done.returncode in (0, 1, 4), what + done.stderr
        assert "bug" not in done.stderr, what + done.stderr
        heal(af, what)
        if not is_whole(builder, owned, what):
            bring_back(builder, owned, what)


def test_what_a_person_wrote_into_a_half_restored_builder_stays(
    full: tuple[Spawned, belongings.Belongings], af: Af
) -> None:
    builder, owned = full
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


def test_a_branch_that_moved_on_is_not_taken_back(
    full: tuple[Spawned, belongings.Belongings], af: Af
) -> None:
    builder, owned = full
    assert af("prune", builder.id, *DISCARD).returncode == 0
    git(builder.repo, "branch", builder.branch, "main")
    refused = af("restore", builder.id)
    assert refused.returncode == 2
    assert "has moved on" in refused.stderr
    assert f"branch -m {builder.branch}" in refused.stderr
    git(builder.repo, "branch", "-m", builder.branch, f"{builder.branch}-later")
    bring_back(builder, owned, "")
    assert af("prune", "--expire", "0").returncode == 0
    assert not list((builder.repo / ".agent-farm/trash").iterdir())


def test_a_branch_that_cannot_be_made_leaves_the_removal(
    full: tuple[Spawned, belongings.Belongings], af: Af
) -> None:
    builder, owned = full
    assert af("prune", builder.id, *DISCARD).returncode == 0
    git(builder.repo, "branch", f"{builder.branch}/below", "main")
    failed = af("restore", builder.id)
    assert failed.returncode == 1, failed
    assert not is_whole(builder, owned, failed.stderr)
    git(builder.repo, "branch", "-D", f"{builder.branch}/below")
    bring_back(builder, owned, "")


def test_a_large_tree_that_is_still_being_deleted_is_no_obstacle(
    full: tuple[Spawned, belongings.Belongings], af: Af
) -> None:
    """Over two thousand files are deleted in the background, beside what is kept."""
    builder, owned = full
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
        bring_back(builder, owned, "a deletion is under way")
    heal(af, "")

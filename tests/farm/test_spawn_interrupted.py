"""Ctrl-C during `af spawn`, and what fails by itself: undone at once, without a doctor."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm import shims
from tests.farm.stopping import stopped_spawn
from tests.farm.test_spawn_killed import TREE, farms
from tests.farm.traces import assert_whole_or_nothing, end_tmux, traces
from tests.gitrepo import commit_files, git, make_repo

pytestmark = pytest.mark.slow


def test_interrupted_at_each_step(tmp_path: Path) -> None:
    for step, repo in farms(tmp_path):
        done = stopped_spawn(repo, "SIGINT", step)
        if "stopped before" not in done.stderr:
            break
        assert done.returncode == 130, done
        assert "Traceback" not in done.stderr
        assert assert_whole_or_nothing(repo, done.stderr) is None
    assert step > 40


@pytest.mark.parametrize("program", ["git", "tmux"])
def test_interrupted_while_a_child_runs(tmp_path: Path, af: Af, program: str) -> None:
    """A terminal sends the signal to the child as well."""
    interrupted = 0
    for step, repo in farms(tmp_path):
        place = tmp_path / f"shim{step}"
        env = shims.make(place, program, step, shims.INTERRUPTS_ALL)
        done = af("spawn", "--runtime", "demo", "Fix it", cwd=repo, env=env, new_session=True)
        if len(shims.calls(place, program)) < step:
            break
        call = shims.calls(place, program)[step - 1]
        assert done.returncode == 130, f"{call}: {done}"
        assert "Traceback" not in done.stderr
        assert assert_whole_or_nothing(repo, call) is None
        interrupted += 1
    assert interrupted >= (3 if program == "git" else 1)


def test_what_a_person_wrote_before_the_interruption_stays(repo: Path, af: Af, tmp_path: Path) -> None:
    worktrees = repo / ".builders"
    meddle = f"  for tree in '{worktrees}'/*; do echo mine > \"$tree/mine.txt\"; done\n  kill -INT 0"
    place = tmp_path / "shim"
    number = _number_of_session_call(af, tmp_path)
    env = shims.make(place, "tmux", number, meddle)
    done = af("spawn", "--runtime", "demo", "Fix it", env=env, new_session=True)
    assert done.returncode == 130
    (file,) = worktrees.glob("*/mine.txt")
    assert file.read_text() == "mine\n"
    assert "mine.txt" in af("status", "--json").stdout


def _number_of_session_call(af: Af, tmp_path: Path) -> int:
    place = tmp_path / "counting"
    env = shims.make(place, "tmux", 0, ":")
    counted = make_repo(tmp_path / "counted", TREE)
    assert af("spawn", "--runtime", "demo", "x", cwd=counted, env=env).returncode == 0
    end_tmux()
    return next(n for n, line in enumerate(shims.calls(place, "tmux"), 1) if "new-session" in line)


@pytest.mark.parametrize("call", ["update-ref", "worktree add", "read-tree -m"])
def test_git_that_fails_undoes_the_spawn(tmp_path: Path, repo: Path, af: Af, call: str) -> None:
    place = tmp_path / "shim"
    env = shims.make(place, "git", 0, ":")
    script = place / "git"
    failing = f"case \"$*\" in *'{call}'*) echo 'fatal: no such luck' >&2; exit 128;; esac\nexec "
    script.write_text(script.read_text().replace("exec ", failing))
    done = af("spawn", "--runtime", "demo", "Fix it", env=env)
    assert done.returncode == 1
    assert "no such luck" in done.stderr
    assert assert_whole_or_nothing(repo, call) is None


def before_the_checkout(place: Path, action: str) -> dict[str, str]:
    """`action` is done in the worktree, where `git` is the real one."""
    env = shims.make(place, "git", 0, ":")
    script = place / "git"
    early = f'case "$*" in *read-tree*-u*) {action};; esac\nexec '
    script.write_text(script.read_text().replace("exec ", early.replace("git ", f"{shutil.which('git')} ")))
    return env


def test_what_was_staged_before_the_checkout_stays(tmp_path: Path, repo: Path, af: Af) -> None:
    env = before_the_checkout(tmp_path / "shim", "echo mine > mine.txt; git add mine.txt")
    done = af("spawn", "--runtime", "demo", "Fix it", env=env)
    assert done.returncode == 0, done.stderr
    worktree = repo / ".builders" / done.stdout.strip()
    assert git(worktree, "status", "--porcelain").splitlines() == ["A  mine.txt"]
    assert (worktree / "mine.txt").read_text() == "mine\n"


def test_what_was_written_before_a_checkout_that_fails_stays(tmp_path: Path, repo: Path, af: Af) -> None:
    """The index is locked by a git of somebody's who is there a moment too early."""
    lock = 'touch "$(git rev-parse --git-dir)/index.lock"'
    env = before_the_checkout(tmp_path / "shim", f"echo mine > mine.txt; {lock}")
    done = af("spawn", "--runtime", "demo", "Fix it", env=env)
    assert done.returncode == 1, done
    assert "it has mine.txt" in done.stderr
    (file,) = repo.glob(".builders/*/mine.txt")
    assert file.read_text() == "mine\n"
    assert "mine.txt" in af("status", "--json").stdout
    id = file.parent.name
    copy = Path(shutil.copytree(repo, repo.parent / "copy", symlinks=True))
    _is_not_resumed(af, repo, id)
    _is_not_resumed(af, copy, id)
    assert af("prune", id, "--discard-changes").returncode == 0
    assert af("restore", id).returncode == 0
    _is_not_resumed(af, repo, id)
    assert file.read_text() == "mine\n"


def _is_not_resumed(af: Af, root: Path, id: str) -> None:
    """A runtime there would take every file for deleted."""
    resumed = af("resume", id, cwd=root)
    assert resumed.returncode == 1, resumed
    assert "before its worktree was whole" in resumed.stderr


def test_a_tmux_that_fails_undoes_the_spawn(tmp_path: Path, repo: Path, af: Af) -> None:
    place = tmp_path / "shim"
    env = shims.make(place, "tmux", 0, ":")
    script = place / "tmux"
    failing = 'case "$*" in *new-session*) echo "server exploded" >&2; exit 1;; esac\nexec '
    script.write_text(script.read_text().replace("exec ", failing))
    done = af("spawn", "--runtime", "demo", "Fix it", env=env)
    assert done.returncode == 1
    assert "server exploded" in done.stderr
    assert assert_whole_or_nothing(repo, "tmux") is None


def test_a_checkout_that_fails_undoes_the_spawn(repo: Path, af: Af, tmp_path: Path) -> None:
    """A filter that fails on one file, as git-lfs without its server does."""
    commit_files(repo, {".gitattributes": "*.bin filter=broken\n", "x.bin": "x"})
    with (repo / ".git/config").open("a") as config:
        config.write('[filter "broken"]\n\tsmudge = false\n\tclean = cat\n\trequired = true\n')
    done = af("spawn", "--runtime", "demo", "Fix it")
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert assert_whole_or_nothing(repo, "filter") is None


def test_a_state_directory_that_cannot_be_made_undoes_the_spawn(repo: Path, af: Af, tmp_path: Path) -> None:
    """Ports are reserved there, after the builder has an id."""
    (tmp_path / "occupied").write_text("")
    done = af("spawn", "--runtime", "demo", "Fix it", env={"XDG_STATE_HOME": str(tmp_path / "occupied")})
    assert done.returncode == 1, done
    assert "Cannot write" in done.stderr
    assert traces(repo).left() == {}


def test_several_interrupted_are_whole_or_not_there_and_are_told(repo: Path, af: Af, tmp_path: Path) -> None:
    place = tmp_path / "shim"
    env = shims.make(place, "tmux", 3, shims.INTERRUPTS_ALL)
    done = af("spawn", "--runtime", "demo", "Fix it", "-n", "12", env=env, new_session=True)
    assert done.returncode == 130, done
    assert "Traceback" not in done.stderr
    left = traces(repo)
    assert set(done.stdout.split()) == left.records
    assert 0 < len(left.records) < 12
    assert left.worktrees == left.registered == left.runs == left.records == left.locks
    assert len(left.branches) == len(left.sessions) == len(left.records)

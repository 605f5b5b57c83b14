"""git killed in the middle of its work: its half-made registration must not outlive the next `af`."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.stopping import stopped_spawn
from tests.farm.traces import assert_whole_or_nothing, end_tmux, traces
from tests.gitrepo import commit_files, git, make_repo

pytestmark = pytest.mark.slow

# What `git worktree add` does, in its order; each is one more step than the one before.
Half = Callable[[Path, Path], None]


def _admin(admin: Path, path: Path) -> None:
    admin.mkdir(parents=True)


def _locked(admin: Path, path: Path) -> None:
    _admin(admin, path)
    (admin / "locked").write_text("initializing\n")


def _empty_gitdir(admin: Path, path: Path) -> None:
    _locked(admin, path)
    path.mkdir(parents=True)
    (admin / "gitdir").write_text("")


def _gitdir(admin: Path, path: Path) -> None:
    _empty_gitdir(admin, path)
    (admin / "gitdir").write_text(f"{path / '.git'}\n")


def _empty_git_file(admin: Path, path: Path) -> None:
    _gitdir(admin, path)
    (path / ".git").write_text("")


def _git_file(admin: Path, path: Path) -> None:
    _gitdir(admin, path)
    (path / ".git").write_text(f"gitdir: {admin}\n")


def _empty_commondir(admin: Path, path: Path) -> None:
    _git_file(admin, path)
    (admin / "HEAD").write_text("0" * 40 + "\n")
    (admin / "commondir").write_text("")


def _all_but_the_branch(admin: Path, path: Path) -> None:
    _empty_commondir(admin, path)
    (admin / "commondir").write_text("../..\n")


HALVES = [
    _admin, _locked, _empty_gitdir, _gitdir, _empty_git_file, _git_file, _empty_commondir,
    _all_but_the_branch,
]  # fmt: skip


def half_made(repo: Path, half: Half, *words: str, name: str = "") -> str:
    """A spawn that was killed with its git, which had come as far as `half`."""
    stopped = stopped_spawn(repo, "SIGKILL", "'worktree', 'add'", *words)
    assert stopped.returncode == -signal.SIGKILL, stopped
    (id,) = traces(repo).records
    half(repo / ".git/worktrees" / (name or id), repo / ".builders" / id)
    return id


@pytest.mark.parametrize("half", HALVES)
def test_half_a_registration_is_undone_by_the_next_command(repo: Path, af: Af, half: Half) -> None:
    half_made(repo, half)
    done = af("status")
    assert done.returncode == 0, done
    assert assert_whole_or_nothing(repo, "status", but="temporary") is None
    assert git(repo, "worktree", "list").count("\n") == 0
    assert af("spawn", "--runtime", "demo", "Fix it").returncode == 0


@pytest.mark.parametrize("half", HALVES)
def test_a_persons_file_in_the_half_made_worktree_stays(repo: Path, af: Af, half: Half) -> None:
    id = half_made(repo, half)
    mine = repo / ".builders" / id / "mine.txt"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine\n")
    for command in (["status"], ["doctor", "--fix"], ["spawn", "--runtime", "demo", "Fix it"]):
        assert af(*command).returncode == 0
        assert mine.read_text() == "mine\n"
    assert git(repo, "worktree", "list").count("\n") >= 1


@pytest.mark.parametrize("half", HALVES)
def test_somebody_elses_worktrees_stay(repo: Path, af: Af, half: Half, tmp_path: Path) -> None:
    """One of the same name (git then numbers ours), one locked by hand, one whose disk is not mounted."""
    commit_files(repo, {"codev/specs/0009-login.md": "# Login\n"})
    for words in (["elsewhere/0009"], ["--lock", "--reason", "initializing", "locked"], ["unmounted"]):
        *options, name = words
        git(repo, "worktree", "add", "-q", "--detach", *options, str(tmp_path / name))
    shutil.move(tmp_path / "unmounted", tmp_path / "unmounted-now")
    half_made(repo, half, "-p", "9", name="00091")
    assert af("status").returncode == 0
    assert af("doctor", "--fix").returncode == 0
    listed = git(repo, "worktree", "list", "--porcelain")
    for name in ("elsewhere/0009", "locked", "unmounted"):
        assert f"worktree {tmp_path / name}\n" in listed
    assert str(repo / ".builders") not in listed
    assert not (repo / ".git/worktrees/00091").exists()


def test_the_stale_lock_of_a_branch_does_not_block_its_spec(repo: Path, af: Af) -> None:
    commit_files(repo, {"codev/specs/0009-login.md": "# Login\n"})
    stopped = stopped_spawn(repo, "SIGKILL", "'update-ref'", "-p", "9")
    assert stopped.returncode == -signal.SIGKILL
    lock = repo / ".git/refs/heads/builder/0009-login.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("")
    done = af("spawn", "--runtime", "demo", "-p", "9")
    assert done.returncode == 0, done


@pytest.mark.parametrize("command", ["worktree add", "update-ref", "read-tree -m"])
@pytest.mark.parametrize("together", [False, True], ids=["git-alone", "with-its-af"])
def test_git_killed_at_each_of_its_own_steps(tmp_path: Path, af: Af, command: str, together: bool) -> None:
    """strace ends the real git just before its n-th call of each kind that changes a disk."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    killed = 0
    for call in ("mkdir", "write", "rename", "unlink"):
        for number in range(1, 40):
            repo = make_repo(tmp_path / f"{call}{number}", {"a.txt": "a\n", "b/c.txt": "c\n"})
            mark = tmp_path / f"{call}{number}.killed"
            env = _tracing(tmp_path / f"shim-{call}{number}", strace, command, call, number, mark, together)
            done = af("spawn", "--runtime", "demo", "Fix it", cwd=repo, env=env)
            what = f"{command}: {call} {number}: {done.stderr}"
            assert "Traceback" not in done.stderr, what
            if not mark.exists():
                assert done.returncode == 0, what
                end_tmux()
                break
            killed += 1
            if not together:
                assert done.returncode == 1, what
                assert assert_whole_or_nothing(repo, what) is None
            assert af("status", cwd=repo).returncode == 0, what
            assert assert_whole_or_nothing(repo, what, but="temporary") is None
            assert git(repo, "worktree", "list").count("\n") == 0, what
    assert killed >= 3


def _tracing(
    place: Path, strace: str, command: str, call: str, number: int, mark: Path, together: bool
) -> dict[str, str]:
    place.mkdir()
    real = shutil.which("git")
    inject = f"-qq -o '{place}/trace' -e trace={call} -e inject={call}:signal=KILL:when={number}"
    also = "kill -9 $PPID" if together else ":"
    script = place / "git"
    script.write_text(
        "#!/bin/sh\n"
        f'case " $* " in *" {command} "*)\n'
        f"  '{strace}' {inject} '{real}' \"$@\"\n"
        "  code=$?\n"
        f"  if [ $code -ge 128 ]; then : > '{mark}'; {also}; fi\n"
        "  exit $code;;\n"
        "esac\n"
        f"exec '{real}' \"$@\"\n"
    )
    script.chmod(0o755)
    return {"PATH": f"{place}:{os.environ['PATH']}"}

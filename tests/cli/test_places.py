"""Every command wherever it may be called: a clear error or the right result, no traceback, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from agent_farm.cli.command_table import COMMANDS
from tests.cli.every_command import (
    ANYWHERE,
    ELSEWHERE,
    FARM_COMMANDS,
    PRESENT,
    WORDS,
    assert_clear,
    assert_refused,
)
from tests.conftest import Af
from tests.gitrepo import git, make_repo

pytestmark = pytest.mark.slow


def test_every_command_is_looked_at() -> None:
    assert set(COMMANDS) - set(WORDS) == ELSEWHERE & set(COMMANDS), "add the command to every_command.py"


@pytest.mark.parametrize("name", FARM_COMMANDS)
def test_outside_a_repository(af: Af, tmp_path: Path, name: str) -> None:
    place = tmp_path / "nowhere"
    place.mkdir()
    assert_refused(af(*WORDS[name], cwd=place), "is not in a git repository", "hint: git init")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name", sorted(ANYWHERE & set(PRESENT)))
def test_what_needs_no_farm_works_anywhere(af: Af, tmp_path: Path, name: str) -> None:
    place = tmp_path / "nowhere"
    place.mkdir()
    done = af(*WORDS[name], cwd=place)
    assert_clear(done)
    assert done.returncode == 0, done


@pytest.mark.parametrize("name", PRESENT)
def test_an_empty_repository(af: Af, tmp_path: Path, name: str) -> None:
    place = tmp_path / "empty"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    done = af(*WORDS[name], cwd=place)
    assert_clear(done)
    if name in ("spawn", "land"):
        assert_refused(done, "has no commit yet", "hint: git add -A && git commit")
        assert not (place / ".builders").exists()


def test_what_an_empty_repository_is_told_to_do_helps(af: Af, tmp_path: Path) -> None:
    """Also where there is no file yet."""
    place = tmp_path / "empty"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    _, _, command = af("spawn", "x", cwd=place).stderr.partition("hint: ")
    subprocess.run(["sh", "-c", command], cwd=place, check=True, capture_output=True)
    done = af("spawn", "--runtime", "demo", "--dry-run", "x", cwd=place)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", FARM_COMMANDS)
def test_a_bare_repository(af: Af, tmp_path: Path, name: str) -> None:
    place = tmp_path / "bare.git"
    place.mkdir()
    git(place, "init", "-q", "--bare")
    before = sorted(place.iterdir())
    assert_refused(af(*WORDS[name], cwd=place), "has no worktree", f"hint: git -C {place} worktree add")
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize("name", FARM_COMMANDS)
def test_inside_a_git_directory(af: Af, repo: Path, name: str) -> None:
    assert_refused(af(*WORDS[name], cwd=repo / ".git"), "inside a git directory")


@pytest.mark.parametrize("name", PRESENT)
def test_a_linked_worktree(af: Af, repo: Path, tmp_path: Path, name: str) -> None:
    side = tmp_path / "side"
    git(repo, "worktree", "add", "-q", str(side))
    assert_clear(af(*WORDS[name], cwd=side))
    assert not (side / ".agent-farm").exists()
    assert not (side / ".builders").exists()


@pytest.mark.parametrize("name", PRESENT)
def test_a_submodule(af: Af, repo: Path, tmp_path: Path, name: str) -> None:
    """It is a repository of its own, with builders of its own."""
    make_repo(tmp_path / "library")
    git(repo, "submodule", "--quiet", "add", str(tmp_path / "library"), "library")
    git(repo, "commit", "-q", "-m", "add library")
    done = af(*WORDS[name], cwd=repo / "library")
    assert_clear(done)
    if name == "spawn":
        assert done.returncode == 0, done
        assert (repo / "library/.builders" / done.stdout.strip() / "README.md").exists()
    assert not (repo / ".builders").exists()


@pytest.mark.parametrize("name", [name for name in PRESENT if name != "init"])
def test_git_sees_nothing_of_it(af: Af, repo: Path, name: str) -> None:
    """Also in a repository that never had a builder."""
    assert_clear(af(*WORDS[name]))
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", FARM_COMMANDS)
def test_a_directory_that_was_deleted(af: Af, tmp_path: Path, name: str) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            'rmdir "$PWD" && exec "$@"',
            "sh",
            sys.executable,
            "-m",
            "agent_farm",
            *WORDS[name],
        ],
        cwd=place,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert_refused(done, "deleted", "hint: cd ")


@pytest.mark.parametrize("name", PRESENT)
def test_git_dir_of_a_hook(af: Af, repo: Path, tmp_path: Path, name: str) -> None:
    """Called from a git hook of another repository, it works on the one it stands in."""
    other = make_repo(tmp_path / "other")
    before = git(other, "for-each-ref"), git(other, "status", "--porcelain")
    hook = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_PREFIX": "",
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
    }
    done = af(*WORDS[name], env=hook)
    assert_clear(done)
    if name == "spawn":
        assert done.returncode == 0, done
        assert (repo / ".builders" / done.stdout.strip()).is_dir()
    assert (git(other, "for-each-ref"), git(other, "status", "--porcelain")) == before
    assert not (other / ".builders").exists()
    assert not (other / ".agent-farm").exists()


@pytest.fixture(scope="module")
def path_without(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A PATH with everything but one program."""

    @cache
    def made(program: str) -> str:
        place = tmp_path_factory.mktemp(f"without-{program}")
        for directory in os.environ["PATH"].split(":"):
            for file in Path(directory).glob("*") if os.path.isdir(directory) else ():
                target = place / file.name
                if file.name != program and not target.is_symlink():
                    target.symlink_to(file)
        assert shutil.which(program, path=str(place)) is None
        return str(place)

    return made


@pytest.mark.parametrize("name", FARM_COMMANDS)
def test_without_git(af: Af, path_without: Callable[[str], str], name: str) -> None:
    """Where the repository is can be told without it; what asks git says that it is missing."""
    done = af(*WORDS[name], env={"PATH": path_without("git")})
    assert_clear(done)
    if name in ("spawn", "conflicts"):
        assert_refused(done, "git is not installed", "hint: ")


@pytest.mark.parametrize("name", PRESENT)
def test_without_tmux(af: Af, repo: Path, path_without: Callable[[str], str], name: str) -> None:
    done = af(*WORDS[name], env={"PATH": path_without("tmux")})
    assert_clear(done)
    if name == "spawn":
        assert_refused(done, "tmux is not installed", "install tmux")
        assert not (repo / ".builders").exists()


def test_the_builders_are_there_without_tmux(af: Af, repo: Path, path_without: Callable[[str], str]) -> None:
    """Unknown is not gone: nothing is taken for dead because tmux cannot be asked."""
    id = af("spawn", "--runtime", "demo", "Fix").stdout.strip()
    for name in PRESENT:
        words = [id if word == "task-0000-none" else word for word in WORDS[name]]
        assert_clear(af(*words, env={"PATH": path_without("tmux")}))
        assert (repo / ".builders" / id / "README.md").exists(), name
        assert id in af("status").stdout, name


@pytest.mark.parametrize("name", PRESENT)
def test_inside_tmux(af: Af, repo: Path, name: str) -> None:
    """A pane's variables are there, of a server that has ended."""
    socket = Path(os.environ["TMUX_TMPDIR"]) / f"tmux-{os.getuid()}" / "ended"
    socket.parent.mkdir(mode=0o700)
    done = af(*WORDS[name], env={"TMUX": f"{socket},1,0", "TMUX_PANE": "%0"})
    assert_clear(done)
    if name == "spawn":
        assert done.returncode == 0, done


def test_a_terminal_that_knows_no_unicode(af: Af) -> None:
    id = af("spawn", "--runtime", "demo", "Fäx 漢字").stdout.strip()
    for name in PRESENT:
        words = [id if word == "task-0000-none" else word for word in WORDS[name]]
        assert_clear(af(*words, env={"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}))

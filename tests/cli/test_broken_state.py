"""Files of ours that are damaged or newer, disks that are full or read-only: said, and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.every_command import PRESENT, WORDS, assert_clear
from tests.conftest import Af
from tests.gitrepo import commit_files, git, make_repo

pytestmark = pytest.mark.slow

TOLERANT = ("status", "config")  # of a mistake in the settings: they say it, and go on
DAMAGE = {
    "newer": json.dumps({"version": 99, "builders": {}, "more": "of a later af"}),
    "cut": '{"version": 1, "builders": {"task',
    "empty": "",
}
# These never look at the records.
WITHOUT_RECORDS = {"init", "config", "completion", "sources", "runtimes", "schedule", "credentials", "butler"}
WITHOUT_RECORDS |= {"tmux", "sessions", "pool", "trigger", "restore", "notify", "fleet"}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", PRESENT)
def test_a_registry_that_cannot_be_read(af: Af, repo: Path, name: str, damage: str) -> None:
    registry = repo / ".agent-farm/registry.json"
    registry.parent.mkdir()
    registry.write_text(DAMAGE[damage])
    done = af(*WORDS[name])
    assert_clear(done)
    assert registry.read_text() == DAMAGE[damage]
    if name not in WITHOUT_RECORDS:
        assert done.returncode == 1, done
        assert str(registry) in done.stderr + done.stdout
        wanted = "version 99" if damage == "newer" else "damaged"
        assert wanted in done.stderr + done.stdout
    if name == "spawn":
        assert not (repo / ".builders").exists()
        assert git(repo, "branch", "--list", "builder/*") == ""


def test_doctor_does_not_repair_what_it_cannot_read(af: Af, repo: Path) -> None:
    id = af("spawn", "--runtime", "demo", "Fix").stdout.strip()
    registry = repo / ".agent-farm/registry.json"
    registry.write_text(DAMAGE["newer"])
    done = af("doctor", "--fix")
    assert_clear(done)
    assert done.returncode == 1
    assert registry.read_text() == DAMAGE["newer"]
    assert (repo / ".builders" / id / "README.md").exists()
    assert git(repo, "rev-parse", "--verify", f"builder/{id}")


@pytest.mark.parametrize("file", ["ports.json", "consent.json"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_files_of_the_user_that_cannot_be_read(af: Af, repo: Path, file: str, damage: str) -> None:
    path = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm" / file
    path.parent.mkdir(parents=True)
    path.write_text(DAMAGE[damage])
    (repo / "agent-farm.toml").write_text('[worktree]\nsetup = "true"\n')
    done = af("spawn", "--runtime", "demo", "--yes", "Fix")
    assert_clear(done)
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert path.read_text() == DAMAGE[damage]
    assert not list((repo / ".builders").glob("*"))
    assert af("status").returncode == 0


@pytest.mark.parametrize(
    "content", ["[spawn\n", 'spawn = "x"\n', "[spwan]\nx = 1\n", "\0", "[spawn]\nbase = 7\n"]
)
@pytest.mark.parametrize("name", ["status", "spawn", "doctor", "config", "prune", "merge"])
def test_settings_that_cannot_be_read(af: Af, repo: Path, name: str, content: str) -> None:
    (repo / "agent-farm.toml").write_text(content)
    done = af(*WORDS[name])
    assert_clear(done)
    assert done.returncode == (0 if name in TOLERANT else 1)
    assert "agent-farm.toml" in done.stderr + done.stdout
    assert (repo / "agent-farm.toml").read_text() == content


def test_what_is_good_in_the_settings_holds_beside_a_typo(af: Af, repo: Path) -> None:
    id = af("spawn", "--runtime", "demo", "Fix").stdout.strip()
    (repo / "agent-farm.toml").write_text('[spawn]\nruntme = "demo"\nbase = "main"\n')
    assert af("config", "get", "spawn.base").stdout == "main\n"
    for words in (("path", id), ("logs", id), ("status",), ("config", "list"), ("send", id, "Go on")):
        done = af(*words)
        assert done.returncode in (0, 5), done
        assert (
            "warning: agent-farm.toml: unknown key spawn.runtme (Did you mean spawn.runtime?)" in done.stderr
        )
    assert af("stop", "--all").returncode == 0
    refused = af("resume", id)
    assert refused.returncode == 1
    assert "hint: af config unset spawn.runtme" in refused.stderr
    assert af("config", "unset", "spawn.runtme").returncode == 0
    assert af("resume", id).returncode == 0


def test_a_file_that_blocks_or_never_ends_is_not_read(af: Af, repo: Path) -> None:
    os.mkfifo(repo / "agent-farm.toml")
    assert "not a regular file" in af("status").stderr
    (repo / "agent-farm.toml").unlink()
    (repo / "agent-farm.toml").symlink_to("/dev/zero")
    assert "not a regular file" in af("status").stderr


@pytest.mark.parametrize("content", ["{", "[]", "7", '{"a": 1}', "\0\0", '{"task": {"dirty": "x"}}'])
def test_a_cache_that_is_damaged_is_made_again(af: Af, repo: Path, content: str) -> None:
    id = af("spawn", "--runtime", "demo", "Fix").stdout.strip()
    (repo / ".agent-farm/git-states.json").write_text(content)
    done = af("status", "--json")
    assert done.returncode == 0, done
    (builder,) = json.loads(done.stdout)["builders"]
    assert builder["id"] == id
    assert {"dirty", "untracked", "ahead", "behind", "missing", "landed", "at"} <= set(builder["git"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Four megabytes of their own, where mounting is permitted."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip("mounting a file system is not permitted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def leave_free(disk: Path, size: int) -> None:
    there = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"\0" * (there.f_bavail * there.f_frsize - size))


@pytest.fixture
def farm_on_disk(small_disk: Path, af: Af) -> tuple[Path, str]:
    """A farm on the small disk, with the user's state beside it, and a builder that has stopped with work."""
    repo = make_repo(small_disk / "repo")
    environment = {"XDG_STATE_HOME": str(small_disk / "state")}
    id = af("spawn", "--runtime", "demo", "Fix", cwd=repo, env=environment).stdout.strip()
    assert af("stop", id, cwd=repo, env=environment).returncode == 0
    commit_files(repo / ".builders" / id, {"work.txt": "work\n"})
    (repo / ".builders" / id / "unsaved.txt").write_text("unsaved\n")
    return repo, id


def assert_nothing_lost(af: Af, repo: Path, id: str) -> None:
    assert (repo / ".builders" / id / "unsaved.txt").read_text() == "unsaved\n"
    assert git(repo, "show", f"builder/{id}:work.txt") == "work"
    status = af("status", "--json", cwd=repo, env={"XDG_STATE_HOME": str(repo.parent / "state")})
    assert [builder["id"] for builder in json.loads(status.stdout)["builders"]] == [id], status


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(b"\0" * 4096)


def everything(id: str) -> list[list[str]]:
    return [[id if word == "task-0000-none" else word for word in WORDS[name]] for name in PRESENT]


def test_a_full_disk(af: Af, small_disk: Path, farm_on_disk: tuple[Path, str]) -> None:
    repo, id = farm_on_disk
    fill(small_disk)
    environment = {"XDG_STATE_HOME": str(small_disk / "state")}
    for words in everything(id):
        done = af(*words, cwd=repo, env=environment)
        assert_clear(done)
        if words[0] == "spawn":
            assert done.returncode == 1, done
            assert "No space left on device" in done.stderr
        if words[0] in ("status", "path", "config"):
            assert done.returncode == 0, done
    (small_disk / "ballast").unlink()
    assert_nothing_lost(af, repo, id)
    assert af("doctor", "--fix", cwd=repo, env=environment).returncode == 0
    assert len(list((repo / ".builders").iterdir())) == 1
    assert af("spawn", "--runtime", "demo", "Now", cwd=repo, env=environment).returncode == 0


def test_a_read_only_disk(af: Af, small_disk: Path, farm_on_disk: tuple[Path, str]) -> None:
    repo, id = farm_on_disk
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    environment = {"XDG_STATE_HOME": str(small_disk / "state")}
    for words in everything(id):
        done = af(*words, cwd=repo, env=environment)
        assert_clear(done)
        if words[0] in ("spawn", "resume"):
            assert done.returncode == 1, done
            assert "Read-only file system" in done.stderr
        if words[0] in ("status", "path", "config", "logs"):
            assert done.returncode == 0, done
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert_nothing_lost(af, repo, id)


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_builder_can_be_stopped_on_a_disk_that_takes_nothing(af: Af, small_disk: Path, how: str) -> None:
    """It may be what fills it."""
    repo = make_repo(small_disk / "repo")
    id = af("spawn", "--runtime", "demo", "Fix", cwd=repo).stdout.strip()
    assert af("wait", id, cwd=repo).returncode == 0
    if how == "full":
        fill(small_disk)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = af("stop", "--all", cwd=repo)
    assert_clear(done)
    assert done.returncode == 1
    assert f"{id} has ended, but this could not be recorded" in done.stderr
    assert "No space left" in done.stderr or "Read-only file system" in done.stderr
    (builder,) = json.loads(af("status", "--json", cwd=repo).stdout)["builders"]
    assert builder["status"]["state"] not in ("idle", "working", "starting")
    assert af("stop", "--all", cwd=repo).stderr == "No builder is running.\n"


def test_a_disk_that_fills_up_during_the_checkout(af: Af, small_disk: Path) -> None:
    """The repository packs well, its checkout does not fit: nothing of the spawn is left."""
    repo = make_repo(small_disk / "repo")
    commit_files(repo, {f"large{number}.txt": "x" * 500_000 for number in range(4)})
    leave_free(small_disk, 1_000_000)
    done = af("spawn", "--runtime", "demo", "Fix", cwd=repo)
    assert_clear(done)
    assert done.returncode == 1
    assert list((repo / ".builders").glob("*")) == []
    assert git(repo, "branch", "--list", "builder/*") == ""
    assert git(repo, "worktree", "list").count("\n") == 0


def test_a_disk_that_fills_up_during_a_merge(af: Af, small_disk: Path) -> None:
    """Some of the files fit: none of them is left, and the merge lands as soon as there is room."""
    repo = make_repo(small_disk / "repo")
    id = af("spawn", "--shell", "--runtime", "demo", cwd=repo).stdout.strip()
    assert af("stop", id, cwd=repo).returncode == 0
    commit_files(repo / ".builders" / id, {f"large{number}.txt": "x" * 400_000 for number in range(3)})
    leave_free(small_disk, 700_000)
    done = af("merge", id, cwd=repo)
    assert_clear(done)
    assert done.returncode == 1
    assert "large" in done.stderr
    assert git(repo, "status", "--porcelain", "-uall") == ""
    assert git(repo, "log", "--format=%s") == "first"
    (small_disk / "ballast").unlink()
    assert af("merge", id, cwd=repo).returncode == 0
    assert git(repo, "status", "--porcelain", "-uall") == ""

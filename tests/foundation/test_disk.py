"""Files that several processes share: whole or not at all, one writer at a time."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_farm.disk import (
    cannot_write,
    file_lock,
    is_locked,
    make_directory,
    read_plain,
    replace_file,
    stale_temporaries,
)
from agent_farm.errors import AgentFarmError, LockTaken
from tests.waiting import wait_until

FORK = multiprocessing.get_context("fork")


def test_replace_file_writes_text_and_bytes_for_the_user_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "text", "Grüße\n")
    replace_file(tmp_path / "bytes", b"\xff\0")
    assert (tmp_path / "text").read_bytes() == "Grüße\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\xff\0"
    assert (tmp_path / "text").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["bytes", "text"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_the_mode_holds_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        replace_file(tmp_path / "file", "x", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_failure_leaves_the_old_content_and_no_scrap(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()  # a directory cannot be replaced by a file
    with pytest.raises(AgentFarmError, match="Cannot write"):
        replace_file(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("home", "tmp")] == ["file"]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentFarmError, match=r"Cannot write .*/none/file"):
        replace_file(tmp_path / "none/file", "x")


def _write_for_ever(path: Path, letter: str) -> None:
    while True:
        replace_file(path, letter * 3_000_000)


def test_the_hint_names_a_directory_that_is_there(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "full")
    assert cannot_write(tmp_path / "not/yet/file", full).hint == f"df -h {tmp_path}"


def test_readers_see_one_content_or_the_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writers = [FORK.Process(target=_write_for_ever, args=(path, letter), daemon=True) for letter in "ab"]
    for writer in writers:
        writer.start()
    try:
        wait_until(path.exists, what="the first content")
        for _ in range(300):
            content = path.read_text()
            assert content in ("a" * 3_000_000, "b" * 3_000_000)
    finally:
        for writer in writers:
            writer.kill()
            writer.join(10)


def test_a_writer_that_was_killed_leaves_a_file_that_is_found(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "def kill(event, arguments):\n"
        "    if event == 'os.rename': os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(kill)\n"
        "from pathlib import Path\n"
        "from agent_farm.disk import replace_file\n"
        f"replace_file(Path({str(tmp_path / 'file')!r}), 'new')\n"
    )
    (tmp_path / "file").write_text("old")
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "file").read_text() == "old"
    (scrap,) = stale_temporaries(tmp_path)
    assert scrap.read_text() == "new"


def test_what_a_live_process_is_writing_is_not_stale(tmp_path: Path) -> None:
    (tmp_path / f".file.{os.getpid()}.tmp").touch()
    (tmp_path / ".somebody-elses.tmp").touch()
    (tmp_path / ".4194303.tmp").touch()
    assert stale_temporaries(tmp_path) == []


@given(st.binary())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_any_bytes_come_back(tmp_path: Path, content: bytes) -> None:
    replace_file(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == content


def test_make_directory(tmp_path: Path) -> None:
    make_directory(tmp_path / "a/b")
    make_directory(tmp_path / "a/b")
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(AgentFarmError, match="Cannot write"):
        make_directory(tmp_path / "file/b")


# Locks


def _count_up(lock: Path, counter: Path) -> None:
    for _ in range(50):
        with file_lock(lock):
            counter.write_text(str(int(counter.read_text()) + 1))


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    workers = [FORK.Process(target=_count_up, args=(tmp_path / "deep/lock", counter)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert counter.read_text() == "300"


def _count_up_and_remove(lock: Path, counter: Path) -> None:
    for _ in range(50):
        with file_lock(lock):
            counter.write_text(str(int(counter.read_text()) + 1))
            lock.unlink()


def test_a_holder_may_remove_the_file(tmp_path: Path) -> None:
    """Whoever waited for the old file takes the new one: two files would be two locks."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    workers = [FORK.Process(target=_count_up_and_remove, args=(tmp_path / "lock", counter)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 6
    assert counter.read_text() == "300"


def test_a_lock_that_is_taken_is_refused_within_the_wait(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with file_lock(lock):
        assert is_locked(lock)
        for wait in (0, 0.05):
            with pytest.raises(LockTaken, match="lock is held"), file_lock(lock, wait=wait):
                pass
    assert not is_locked(lock)


def test_a_lock_file_alone_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert not is_locked(tmp_path / "lock")


@pytest.mark.parametrize("inherit", [True, False])
def test_a_child_holds_the_lock_when_it_is_given(tmp_path: Path, inherit: bool) -> None:
    """An orphaned git is seen by the lock of the spawn that was killed."""
    lock = tmp_path / "lock"
    with file_lock(lock, inherit=inherit) as descriptor:
        child = subprocess.Popen(["sleep", "60"], pass_fds=(descriptor,) if inherit else ())
    try:
        assert is_locked(lock) is inherit
    finally:
        child.kill()
        child.wait(10)
    wait_until(lambda: not is_locked(lock), what="the child's lock to go with it")


def test_a_child_that_is_not_meant_to_hold_it_does_not(tmp_path: Path) -> None:
    with file_lock(tmp_path / "lock"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert not is_locked(tmp_path / "lock")
    finally:
        child.kill()
        child.wait(10)


def test_an_error_inside_gives_the_lock_back(tmp_path: Path) -> None:
    with pytest.raises(KeyError), file_lock(tmp_path / "lock"):
        raise KeyError
    assert not is_locked(tmp_path / "lock")


def test_a_link_that_waits_for_the_writer_leads_nowhere(tmp_path: Path) -> None:
    """A repository can bring files of any name: settings are written into its top directory."""
    theirs = tmp_path / "theirs"
    theirs.write_text("mine")
    file = tmp_path / "repo/agent-farm.toml"
    file.parent.mkdir()
    file.with_name(f".{file.name}.{os.getpid()}.tmp").symlink_to(theirs)
    replace_file(file, "new")
    assert (file.read_text(), theirs.read_text()) == ("new", "mine")


def test_a_directory_in_place_of_a_file_leaves_nothing_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with pytest.raises(OSError, match="not a regular file"):
            read_plain(tmp_path, limit=10)
    assert len(os.listdir("/proc/self/fd")) == len(before)

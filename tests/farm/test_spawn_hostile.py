"""Text and paths that a shell, tmux or git would take for something else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_farm.builders.prompts import task_prompt
from agent_farm.errors import UsageError
from agent_farm.operations.spawn_request import require_task_text
from tests.conftest import Af
from tests.farm.traces import all_sessions, farm_name, traces
from tests.gitrepo import git, make_repo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SENTINEL = "executed-by-mistake"
TASKS = {
    "substitution": f"$(touch {SENTINEL})",
    "backticks": f"`touch {SENTINEL}`",
    "quotes": f"it's \"quoted\" \\\\ '; touch {SENTINEL}; '",
    "newlines": "one\ntwo\r\nthree\n\n",
    "dashes": "-rf",
    "long-option": "--runtime=claude-code",
    "tmux-format": f"#(touch {SENTINEL}) #{{pane_id}} %1 $0 ; kill-server",
    "environment": "$HOME ${PATH} ~ !! *",
    "emoji": "🤖 naïve Ω 漢字 \u202e\u200b",
    "escapes": "\x1b[2J\x1b]0;title\x07\x1b[201~exit\r\x08\x7f",
    "spaces": "  indented\tand trailing  ",
    "100-kb": "0123456789abcdef" * 6400,
}


def spawned(af: Af, *args: str, cwd: Path | None = None, input: str | None = None) -> str:
    done = af("spawn", "--runtime", "demo", *args, cwd=cwd, input=input)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def assert_received(af: Af, id: str, prompt: bytes, cwd: Path | None = None) -> None:
    """The runtime prints the digest of what reached it."""
    wanted = f"prompt sha256 {hashlib.sha256(prompt).hexdigest()} bytes {len(prompt)}"
    wait_until(
        lambda: wanted in af("capture", id, "--history", "200", cwd=cwd).stdout.replace("\n", ""),
        what=f"{wanted} on the screen",
    )


def assert_not_executed(*places: Path) -> None:
    for place in places:
        assert not [path for path in place.rglob(f"{SENTINEL}*") if path.is_file()]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
def test_a_task_reaches_the_runtime_byte_for_byte(af: Af, tmp_path: Path, task: str) -> None:
    id = spawned(af, "--", task)
    assert_received(af, id, task.encode())
    assert_not_executed(tmp_path)


def test_a_task_of_a_megabyte_comes_by_file(af: Af, tmp_path: Path) -> None:
    text = "".join(f"line {number} 'é' $(touch {SENTINEL})\n" for number in range(28_000))
    assert len(text.encode()) > 1_000_000
    file = tmp_path / "task.md"
    file.write_text(text)
    assert_received(af, spawned(af, "--task-file", str(file)), text.encode())
    assert_not_executed(tmp_path)


def test_a_task_comes_from_standard_input(af: Af) -> None:
    text = "from a pipe\nwith two lines and no end"
    assert_received(af, spawned(af, "--task-file", "-", input=text), text.encode())


def test_the_prompt_is_in_no_argument_list(af: Af) -> None:
    """Every user of the machine can read those."""
    secret = "only-for-the-runtime-4711"
    id = spawned(af, secret)
    assert_received(af, id, secret.encode())
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        assert secret.encode() not in words or b"pytest" in words


@pytest.mark.parametrize("task", ["with\0NUL", "\0"])
def test_nul_is_refused(af: Af, repo: Path, task: str) -> None:
    """Only a file or standard input can hold it."""
    done = af("spawn", "--runtime", "demo", "--task-file", "-", input=task)
    assert done.returncode == 2
    assert "NUL" in done.stderr
    assert traces(repo).left() == {}


def test_bytes_that_are_no_text_are_refused(af: Af, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "task").write_bytes(b"caf\xe9")
    done = af("spawn", "--runtime", "demo", "--task-file", str(tmp_path / "task"))
    assert done.returncode == 2
    assert "not UTF-8" in done.stderr
    assert traces(repo).left() == {}


@given(st.text(min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_either_kept_as_it_is_or_refused(text: str) -> None:
    try:
        kept = require_task_text(text)
    except UsageError:
        assert not text.strip() or "\0" in text or any("\ud800" <= char <= "\udfff" for char in text)
    else:
        assert kept == text
        assert task_prompt(kept) == text


PATHS = [
    "with some spaces",
    "ünï-漢字-🤖",
    f"#(touch {SENTINEL})",
    "#{pane_id}",
    "a;b",
    "-leading-dash",
    f"$(touch {SENTINEL})`id`",
    'it\'s "quoted"',
    "new\nline",
    "per%cent #S",
    ".hidden.git",
]


@pytest.mark.parametrize("name", PATHS)
def test_a_repository_may_have_any_path(af: Af, tmp_path: Path, name: str) -> None:
    repo = make_repo(tmp_path / name)
    task = "Say it"
    id = spawned(af, task, cwd=repo)
    assert_received(af, id, task.encode(), cwd=repo)
    assert af("wait", id, "--for", "idle", "--timeout", "300", cwd=repo).returncode == 0
    assert f"af-{farm_name(repo)}-{id}" in all_sessions()
    assert af("path", id, cwd=repo).stdout == f"{repo}/.builders/{id}\n"
    assert id in af("status", cwd=repo).stdout
    sent = af("send", id, "and again", cwd=repo)
    assert sent.stdout == f"{id} submitted\n", sent
    assert git(repo, "status", "--porcelain") == ""
    stopped = af("stop", id, cwd=repo)
    assert stopped.returncode == 0, stopped
    assert not traces(repo).sessions
    assert_not_executed(tmp_path)


def test_a_path_that_is_no_utf8(af: Af, tmp_path: Path) -> None:
    repo = make_repo(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
    id = spawned(af, "Say it", cwd=repo)
    assert_received(af, id, b"Say it", cwd=repo)
    assert id in af("status", cwd=repo).stdout
    assert af("stop", id, cwd=repo).returncode == 0


def test_a_hostile_file_name_in_the_prompt(af: Af, repo: Path) -> None:
    name = f"$(touch {SENTINEL}) 'x'.py"
    (repo / name).write_text("")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "file")
    id = spawned(af, "Look", "--files", name)
    assert_received(af, id, f"Look\n\nRelevant files: {name}".encode())
    assert_not_executed(repo)

"""No test can see or touch the user's home, git configuration or tmux server; none is run again or sleeps."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.traces import all_sessions
from tests.gitrepo import git
from tests.leftovers import CHECKOUT, files_of_the_user, processes_of

# They wait for a condition, are the program that a test looks at, or (test_live) measure what idling costs.
MAY_SLEEP = {
    "waiting.py", "fake_api/mcp.py", "fake_api/server.py", "pane/programs.py", "runtimes/lego.py",
    "runtimes/acp_agent.py",
    "dashboard/test_live.py",
}  # fmt: skip
PRIVATE = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "GIT_CONFIG_GLOBAL")


@pytest.mark.parametrize("name", PRIVATE)
def test_the_users_directories_are_the_tests_own(tmp_path: Path, name: str) -> None:
    assert Path(os.environ[name]).is_relative_to(tmp_path)


def test_home_is_the_tests_own_however_it_is_asked_for(tmp_path: Path) -> None:
    assert Path.home().is_relative_to(tmp_path)
    assert Path("~").expanduser().is_relative_to(tmp_path)


def test_no_variable_of_the_user_comes_through() -> None:
    """Keys, agents and the tmux and git that pytest may have been started from."""
    for name in os.environ:
        assert not name.startswith(("TMUX_PANE", "GIT_DIR", "GIT_WORK", "GIT_INDEX", "SSH_")), name
        assert name == "AF_SERVER" or not name.startswith("AF_"), name
        assert not name.endswith(("_TOKEN", "_API_KEY", "_SECRET")), name
    assert "TMUX" not in os.environ


def test_tmux_has_a_server_of_its_own_and_it_is_empty() -> None:
    sockets = Path(os.environ["TMUX_TMPDIR"])
    assert sockets != Path("/tmp")
    assert list(sockets.iterdir()) == []
    assert all_sessions() == []


def test_a_tmux_server_of_a_test_is_in_its_own_directory(repo: Path, af: Af) -> None:
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 0
    answer = subprocess.run(
        ["tmux", "display-message", "-p", "#{socket_path}"], capture_output=True, text=True, check=True
    )
    assert Path(answer.stdout.strip()).is_relative_to(os.environ["TMUX_TMPDIR"])


def test_git_reads_no_configuration_of_the_user(repo: Path) -> None:
    origins = git(repo, "config", "--list", "--show-origin", "--show-scope").splitlines()
    assert origins
    for line in origins:
        scope, origin = line.split("\t")[:2]
        assert scope in ("global", "local"), line
        assert scope == "local" or str(Path.home()) in origin, line


def test_what_af_writes_for_the_user_stays_in_the_test(repo: Path, af: Af) -> None:
    before = files_of_the_user()
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 0
    assert af("doctor").returncode in (0, 1)
    assert files_of_the_user() == before
    assert (Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json").exists()


def run_inner(tmp_path: Path, test: str) -> subprocess.CompletedProcess[str]:
    """In a pytest of its own."""
    (tmp_path / "test_inner.py").write_text(f"import os, subprocess\n{test}")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            "test_inner.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_test_leaves_no_tmux_server(tmp_path: Path) -> None:
    done = run_inner(
        tmp_path,
        "def test_starts_a_server(repo, af):\n"
        "    assert af('spawn', '--runtime', 'demo', 'Fix').returncode == 0\n"
        f"    open({str(tmp_path / 'where')!r}, 'w').write(os.environ['TMUX_TMPDIR'] + '\\n' + str(repo))\n",
    )
    assert done.returncode == 0, done.stdout
    sockets, repo = (tmp_path / "where").read_text().splitlines()
    assert not Path(sockets).parent.exists()
    assert processes_of(Path(repo)) == []


def test_a_run_that_leaves_a_process_fails(tmp_path: Path) -> None:
    """However it went away: without an environment, in a session of its own."""
    done = run_inner(
        tmp_path,
        "import tests.conftest\n"
        "def test_leaves_one(tmp_path):\n"
        "    tests.conftest.LEAVING = 0.1\n"
        "    left = subprocess.Popen(['sleep', '200'], cwd=tmp_path, env={}, start_new_session=True)\n"
        "    left.returncode = 0  # nobody is to wait for it\n",
    )
    (left,) = processes_of(tmp_path)
    os.kill(int(left.split()[0]), signal.SIGKILL)
    assert done.returncode == 1
    assert f"assert ['{left}'] == []" in done.stdout


def test_what_a_test_leaves_open_is_its_own_failure(tmp_path: Path) -> None:
    """It would be that of a later one: whichever runs when Python collects a cycle that holds it."""
    done = run_inner(
        tmp_path,
        "import socket, pytest\n"
        "pytestmark = pytest.mark.filterwarnings('error')\n"
        "class Cycle:\n"
        "    def __init__(self):\n"
        "        self.itself, self.open = self, socket.socket()\n"
        "@pytest.fixture\n"
        "def given():\n"
        "    return Cycle()\n"
        "def test_before(): pass\n"
        "def test_leaves_it(): Cycle()\n"
        "def test_between(): pass\n"
        "def test_was_given_it(given): pass\n"
        "def test_fails_before_it_closes_it():\n"
        "    one = socket.socket()\n"
        "    assert one is None\n"
        "def test_after(): pass\n",
    )
    failed = re.findall(r"^ERROR test_inner.py::(\w+)", done.stdout, re.MULTILINE)
    assert failed == ["test_leaves_it", "test_was_given_it"], done.stdout
    assert "unclosed <socket.socket" in done.stdout


def test_a_failure_is_not_run_again() -> None:
    """A flaky test has found a bug; running it again would hide it."""
    for name in ("Makefile", "pyproject.toml", ".ci/run"):
        assert not re.search(r"rerun|flaky|--(last-failed|lf)\b", (CHECKOUT / name).read_text()), name


def test_no_test_waits_for_a_fixed_time() -> None:
    tests = CHECKOUT / "tests"
    sleeping = set()
    for path in tests.rglob("*.py"):
        name = path.relative_to(tests).as_posix()
        if "node_modules" not in path.parts and name not in MAY_SLEEP:
            calls = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)]
            sleeping |= {f"{name}:{call.lineno}" for call in calls if ast.unparse(call.func) == "time.sleep"}
    assert not sleeping, "wait for a condition: tests/waiting.py"

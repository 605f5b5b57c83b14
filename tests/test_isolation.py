"""No test can see or touch the user's home, git configuration or tmux server; none is run again or sleeps."""

from __future__ import annotations

import ast
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.traces import all_sessions
from tests.gitrepo import git

REAL_HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)
ROOT = Path(__file__).parent.parent
# They wait for a condition, are the program that a test looks at, or (test_live) measure what idling costs.
MAY_SLEEP = {
    "waiting.py", "fake_api/mcp.py", "fake_api/server.py", "pane/programs.py", "runtimes/lego.py",
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


def test_what_af_writes_for_the_user_stays_in_the_test(repo: Path, af: Af, tmp_path: Path) -> None:
    """Nothing in the real home is newer than the start of this test."""
    mark = tmp_path / "mark"
    mark.touch()
    places = [
        REAL_HOME / name for name in (".local/state/agent-farm", ".config/lctx", ".gitconfig", ".tmux.conf")
    ]
    before = {place: _newest(place) for place in places}
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 0
    assert af("doctor").returncode in (0, 1)
    assert {place: _newest(place) for place in places} == before
    assert (Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json").exists()


def _newest(place: Path) -> float | None:
    paths = [place, *place.rglob("*")] if place.is_dir() else [place]
    return max((path.stat().st_mtime for path in paths if path.exists()), default=None)


def test_a_test_leaves_no_tmux_server(tmp_path: Path) -> None:
    """Run by a pytest of its own: after the test its server is gone, and so is what ran in it."""
    test = tmp_path / "test_inner.py"
    test.write_text(
        "import os, subprocess\n"
        "def test_starts_a_server(repo, af):\n"
        "    assert af('spawn', '--runtime', 'demo', 'Fix').returncode == 0\n"
        f"    open({str(tmp_path / 'where')!r}, 'w').write(os.environ['TMUX_TMPDIR'] + '\\n' + str(repo))\n"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", str(test)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    sockets, repo = (tmp_path / "where").read_text().splitlines()
    assert not Path(sockets).exists()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        assert f"AF_ROOT={repo}\0".encode() not in environment, entry


def test_a_failure_is_not_run_again() -> None:
    """A flaky test has found a bug; running it again would hide it. CI alone looks twice, and shows both."""
    for name in ("Makefile", "pyproject.toml"):
        assert not re.search(r"rerun|flaky|--(last-failed|lf)\b", (ROOT / name).read_text()), name


def test_no_test_waits_for_a_fixed_time() -> None:
    tests = ROOT / "tests"
    sleeping = set()
    for path in tests.rglob("*.py"):
        name = path.relative_to(tests).as_posix()
        if "node_modules" not in path.parts and name not in MAY_SLEEP:
            calls = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)]
            sleeping |= {f"{name}:{call.lineno}" for call in calls if ast.unparse(call.func) == "time.sleep"}
    assert not sleeping, "wait for a condition: tests/waiting.py"

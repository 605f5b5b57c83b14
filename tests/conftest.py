"""Isolation for every test: a private home, git configuration and tmux server, and nothing left running."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agent_farm.server.stopping import stop_server
from tests.forking import Forks
from tests.gitrepo import commit_files, make_repo
from tests.leftovers import changes_of_the_checkout, files_of_the_user, processes_of
from tests.waiting import wait_until

Af = Callable[..., "subprocess.CompletedProcess[str]"]

# A shell without job control has what it starts in the background ignore Ctrl-C, and so would every `af` that
# a test sends one to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup: what it started would outlive its terminal
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# pyenv's python3 is a script that takes longer than most of what it starts.
if (python3 := shutil.which("python3")) and Path(python3).resolve().read_bytes()[:2] == b"#!":
    os.environ["PATH"] = f"{sys.base_prefix}/bin:{os.environ['PATH']}"

HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
LEAVING = 60.0  # seconds that what is ending may take
_KEEP = ("PATH", "LANG", "LC_ALL", "TERM", "SHELL", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "CI")


def pytest_configure() -> None:
    """How long an example takes is the machine's doing; what never ends is ended by the test's own limit."""
    from hypothesis import HealthCheck, settings

    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever drives a browser is slow."""
    for item in items:
        if "visit" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What is there before the first test need not be looked through after each of them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What a test leaves open is its own failure, and not that of a later test in which it is collected.

    One that failed before it closed what it had open has failed already. What is still there after the last
    test of a file is mostly what imports brought, and is not looked through again: that took 12 ms a test.
    """
    yield
    left: list[str] = []
    if isinstance(item, pytest.Function):
        item.funcargs.clear()
    has_failed = hasattr(sys, "last_value")
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):  # they hold its variables
        if hasattr(sys, name):
            delattr(sys, name)
    with pytest.MonkeyPatch.context() as ours:
        ours.setattr(sys, "unraisablehook", lambda found: left.append(_described(found)))
        gc.collect()
    if nextitem is None or nextitem.path != item.path:
        gc.freeze()
    for number, before in HANDLERS.items():
        if (found := signal.getsignal(number)) is not before:
            signal.signal(number, before)
            left.append(f"{number.name} goes to {found!r}")
    assert has_failed or not left, "\n".join(left)


def _described(found: sys.UnraisableHookArgs) -> str:
    """With PYTHONTRACEMALLOC=20, also where it was made."""
    made = tracemalloc.get_object_traceback(found.object)
    return "\n".join([f"{found.object!r}: {found.exc_value}", *(made.format() if made else ())])


@pytest.fixture(scope="session", autouse=True)
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where sockets are, whose paths have to be short; a run that leaves anything behind fails."""
    alone = bool(os.environ.get("CI"))  # nobody else writes in this home and this checkout meanwhile
    before = (files_of_the_user(), changes_of_the_checkout()) if alone else None
    place = Path(tempfile.mkdtemp(prefix="af-tests-", dir="/tmp"))
    yield place
    base = tmp_path_factory.getbasetemp()
    with suppress(AssertionError):
        wait_until(lambda: not processes_of(base, place), timeout=LEAVING)
    assert processes_of(base, place) == []
    place.rmdir()
    assert before is None or before == (files_of_the_user(), changes_of_the_checkout())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, short: Path) -> Iterator[Path]:
    """The user's own home, git configuration and tmux server cannot be reached from a test."""
    with private_home(tmp_path, short) as private:
        yield private


@contextmanager
def private_home(directory: Path, short: Path) -> Iterator[Path]:
    """Below `directory`; whatever was started with it ends with it."""
    private = _made(directory / "home")
    sockets = Path(tempfile.mkdtemp(dir=short))
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name not in _KEEP and not name.startswith(("PYTEST_", "COV_")):
                environment.delenv(name)
        environment.setenv("HOME", str(private))
        environment.setenv("TMUX_TMPDIR", str(sockets))
        environment.setenv("TMPDIR", str(_made(directory / "tmp")))
        environment.setenv("XDG_CONFIG_HOME", str(private / ".config"))
        environment.setenv("XDG_STATE_HOME", str(private / ".local/state"))
        environment.setenv("XDG_CACHE_HOME", str(private / ".cache"))
        environment.setenv("GIT_CONFIG_NOSYSTEM", "1")
        environment.setenv("GIT_CONFIG_GLOBAL", str(private / ".gitconfig"))
        environment.setenv("SHELL", "/bin/bash")
        environment.setenv("AF_SERVER", "off")  # tests of the server start one by themselves
        (private / ".gitconfig").write_text(
            "[user]\n\tname = Test\n\temail = test@example.invalid\n"
            '[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n'
        )
        yield private
        end_tmux_servers(sockets)
        end_processes(private)
    shutil.rmtree(sockets, ignore_errors=True)


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def end_tmux_servers(sockets: Path) -> None:
    for socket in sockets.glob("tmux-*/*"):
        subprocess.run(
            ["tmux", "-S", str(socket), "kill-server"], check=False, capture_output=True, timeout=120
        )


def end_processes(private: Path) -> None:
    """Whatever was started with this home: a server that a command left running, and that is its purpose."""
    wanted = f"HOME={private}".encode()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environment:
            if wanted in environment.read().split(b"\0") and int(name) != os.getpid():
                os.kill(int(name), signal.SIGKILL)


@pytest.fixture
def repo(tmp_path: Path, home: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def farm(repo: Path) -> Iterator[Path]:
    """One that spawns the demo runtime; its server ends with the test."""
    commit_files(repo, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n'})
    yield repo
    stop_server(repo, now=True)


@pytest.fixture(scope="session")
def forks(short: Path) -> Iterator[Forks]:
    made = Forks({name: os.environ[name] for name in _KEEP if name in os.environ})
    yield made
    made.end()


@pytest.fixture
def af(repo: Path, forks: Forks) -> Af:
    """The real command line in a process of its own: `af("spawn", "Fix auth").stdout`.

    With `fork=False` it is started from its first import on; see `tests/forking.py` for what that tells.
    """
    return af_in(repo, forks)


def af_in(repo: Path, forks: Forks) -> Af:
    def run(
        *args: str,
        cwd: Path | None = None,
        input: str | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 300,
        new_session: bool = False,
        fork: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        return forks.run(
            args,
            cwd=cwd or repo,
            input=input,
            env={**os.environ, **(env or {})},
            timeout=timeout,
            new_session=new_session,
            fork=fork,
        )

    return run

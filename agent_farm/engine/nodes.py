"""Starting a node of a cluster on this machine, and ending it with all of its processes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_farm.disk import file_lock, is_locked, make_directory
from agent_farm.documents import store
from agent_farm.engine.certificates import HEAD_SECONDS, require_head, require_tls
from agent_farm.engine.child import NAMES
from agent_farm.engine.ray_files import (
    Node,
    node_file,
    node_lock,
    node_log,
    ray_environment,
    read_node,
    require_ray,
    run_directory,
    running_node,
    state_directory,
)
from agent_farm.errors import AgentFarmError, LockTaken, UsageError

LOOPBACK = "127.0.0.1"
_UP = b"Ray runtime started"
_START_SECONDS = 180.0
_END_SECONDS = 30.0
_STORE_BYTES = 100_000_000  # for objects in memory; commits travel in much smaller pieces
_NO_PORT = ("--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0")


@contextmanager
def starting() -> Iterator[None]:
    """While this is held, no node runs here and nobody else starts one. If a node already runs, yields its
    token.
    """
    make_directory(state_directory())
    busy = LockTaken("Another af command starts a node here", hint="af fleet status")
    with file_lock(state_directory() / "start.lock", wait=0, busy=busy):
        _require_no_node()
        yield


def _require_no_node() -> None:
    if node := running_node():
        raise UsageError(f"A node of {node.cluster} runs here already", hint="af fleet down")


def start_head(host: str, port: int, *, name: str, slots: int, tls: str = "") -> Node:
    if tls:
        require_tls(tls, host)
    words = ("--head", f"--port={port}", "--include-dashboard=false")
    return _start(words, f"{host}:{port}", host, name, slots, tls)


def start_member(cluster: str, host: str | None, *, name: str, slots: int, tls: str = "") -> Node:
    if host is None and cluster.rpartition(":")[0] == LOOPBACK:
        host = LOOPBACK
    require_ray()
    reached_by = require_head(cluster, tls, HEAD_SECONDS, host)
    if host is None:
        host = reached_by
        if tls:
            require_tls(tls, host)
    return _start((f"--address={cluster}",), cluster, host, name, slots, tls)


def _start(words: Sequence[str], cluster: str, host: str, name: str, slots: int, tls: str) -> Node:
    require_ray()
    _require_no_node()
    environment = {**os.environ, **ray_environment(tls), NAMES: ":".join(os.environ)}
    place = run_directory() / "r"
    argv = [
        sys.executable, "-I", "-m", "agent_farm.engine.ray_node", *words, *_NO_PORT,
        f"--node-ip-address={host}",
        "--num-cpus=0", f'--resources={{"builder": {slots}}}', f"--labels=af-name={name}",
        f"--temp-dir={place}", f"--object-store-memory={_STORE_BYTES}", "--disable-usage-stats",
        "--include-log-monitor=false", "--log-style=record", "--log-color=false",
    ]  # fmt: skip
    make_directory(state_directory())
    descriptor = os.open(node_log(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, cwd="/",
            env=environment, start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(descriptor)
    node = Node(process.pid, cluster, name, tls, host)
    store(node_file(), node)
    _wait_for(process, place)
    process.returncode = 0  # it outlives this process, which need not wait for it
    return node


def _wait_for(process: subprocess.Popen[bytes], place: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while _UP not in node_log().read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            lines = node_log().read_bytes().decode("utf-8", "replace").split("\n")
            said = [line.strip() for line in lines if line.strip()]
            _end(process.pid, place)
            process.wait()
            raise AgentFarmError(
                "Ray did not start here", why=said[-1][:300] if said else None, hint=f"less {node_log()}"
            )
        time.sleep(0.1)


def end_node() -> Node | None:
    """Returns the node that ran here. Builders are not its processes and keep running."""
    node = read_node()
    if node is None:
        return None
    place = run_directory() / "r"
    _end(node.pid if is_locked(node_lock()) else None, place)
    shutil.rmtree(place, ignore_errors=True)
    node_file().unlink(missing_ok=True)
    return node


def _end(pid: int | None, place: Path) -> None:
    """Asks it to end first; then ends every process with the node's directory on its command line."""
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
        _wait_until_gone(lambda: is_locked(node_lock()) or _processes(place))
    _signal(place, signal.SIGKILL)
    _wait_until_gone(lambda: _processes(place))


def _wait_until_gone(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while look() and time.monotonic() < deadline:
        time.sleep(0.1)


def _signal(place: Path, number: int) -> None:
    for pid in _processes(place):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _processes(place: Path) -> list[int]:
    """This user's processes with `place` or a path below it as an argument. Linux only; elsewhere none."""
    found, wanted = [], re.compile(re.escape(os.fsencode(place)) + rb"[/\0]")
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == os.geteuid() and wanted.search((entry / "cmdline").read_bytes()):
                found.append(int(entry.name))
    return found

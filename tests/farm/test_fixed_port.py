"""`af serve`: one port of this machine, which is one builder's after the other."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_farm.farm.farm import open_farm
from tests.conftest import Af
from tests.waiting import wait_until

AF = Path(sys.executable).parent / "af"


@contextmanager
def dev_server(port: int, says: str) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(says.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@pytest.fixture
def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def get(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.read().decode())
    except OSError:
        return ""


def test_one_builder_at_a_time_has_the_port(repo: Path, af: Af, port: int) -> None:
    for id in ("one", "two"):
        assert af("spawn", "--runtime", "demo", "--name", id, "[[say:hi]]").returncode == 0
    records = open_farm(repo).registry.read()
    words = [AF, "serve", "one", "--port", str(port)]
    serving = subprocess.Popen(words, cwd=repo, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: "one has no server on port" in get(port), what="the port to be taken")
        with dev_server(records["one"].ports[0], "I am one"), dev_server(records["two"].ports[0], "I am two"):
            assert get(port) == "I am one"
            kept = socket.create_connection(("127.0.0.1", port), timeout=60)
            changed = af("serve", "two", "--port", str(port))
            assert changed.returncode == 0
            assert f"http://localhost:{port} goes to two" in changed.stdout
            assert kept.recv(1) == b""  # a page does not talk to two
            kept.close()
            assert get(port) == "I am two"
    finally:
        serving.send_signal(signal.SIGINT)
        _, said = serving.communicate(timeout=60)
    assert f"http://localhost:{port} goes to one (port {records['one'].ports[0]})" in said
    assert "Traceback" not in said


WITHOUT_IPV6 = """
import fcntl, os, socket, struct, sys
open("/proc/sys/net/ipv6/conf/all/disable_ipv6", "w").write("1")
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))  # up
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_machine_without_ipv6_is_served_too(repo: Path, af: Af) -> None:
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rn", "true"], check=False).returncode:
        pytest.skip("nobody may have a network of their own here")
    assert af("spawn", "--runtime", "demo", "--name", "one", "[[say:hi]]").returncode == 0
    words = [AF, "serve", "one", "--port", "5557"]
    serving = subprocess.Popen(
        ["unshare", "-rn", sys.executable, "-c", WITHOUT_IPV6, *words],
        cwd=repo, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert serving.stderr is not None
    assert "http://localhost:5557 goes to one" in serving.stderr.readline()
    serving.send_signal(signal.SIGINT)
    serving.communicate(timeout=60)


def test_what_keeps_it_from_serving_is_said(repo: Path, af: Af, port: int) -> None:
    assert af("spawn", "--runtime", "demo", "--name", "one", "[[say:hi]]").returncode == 0
    refused = af("serve", "one")
    assert (refused.returncode, "af serve --port 3000 one" in refused.stderr) == (2, True)
    with dev_server(port, "somebody's"):
        taken = af("serve", "one", "--port", str(port))
    assert (taken.returncode, f"Port {port} cannot be taken" in taken.stderr) == (1, True)

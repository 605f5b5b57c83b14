"""A cluster with `--tls`, over real Ray: all of its sockets speak TLS, and only to certificates of its CA."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agent_farm.engine.ray_files import token_file
from tests.conftest import Af
from tests.engine.certificates import Authority
from tests.engine.engines import AF, LOOPBACK, Cluster, free_port
from tests.fleet.test_fleet import ok, shown
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def listening(place: Path) -> dict[int, str]:
    """The ports of processes that have that directory in their words or environment, and which they are."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = " ".join(process.cmdline())
            if str(place) in f"{words} {process.environ()}":
                connections = process.net_connections("tcp")
                found |= {one.laddr.port: words for one in connections if one.status == "LISTEN"}
    return found


def runtime_env_agents(place: Path) -> set[int]:
    """The ports of a part of Ray that knows no TLS; it is found by its parent, as its new name hides its
    environment."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            parent = process.parent()
            if (
                "RuntimeEnvAgent" in " ".join(process.cmdline())
                and parent
                and str(place) in str(parent.environ())
            ):
                connections = process.net_connections("tcp")
                found |= {one.laddr.port for one in connections if one.status == "LISTEN"}
    return found


def refused_without_token(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    connection.request("POST", "/get_or_create_runtime_env", body=b"")
    status = connection.getresponse().status
    connection.close()
    return status in (401, 403)


def greeted(port: int, tls: Path, *, named: bool) -> bool:
    """Whether it answers who trusts its CA, and, if `named`, has a certificate."""
    context = ssl.create_default_context(cafile=tls / "ca.crt")
    context.set_alpn_protocols(["h2"])
    if named:
        context.load_cert_chain(tls / "tls.crt", tls / "tls.key")
    try:
        with (
            socket.create_connection((LOOPBACK, port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=LOOPBACK) as one,
        ):
            return one.recv(9) != b""
    except (ConnectionError, ssl.SSLError):
        return False


def test_all_of_it_speaks_tls_and_strangers_are_refused(
    af: Af, repo: Path, cluster: Cluster, short: Path, tmp_path: Path
) -> None:
    ours, port = Authority(), free_port()
    tls, theirs = ours.directory(tmp_path / "tls"), ours.directory(tmp_path / "theirs")
    up = af("fleet", "up", "--port", str(port), "--tls", str(tls))
    assert up.returncode == 0, up.stderr
    assert f"{LOOPBACK}:{port}  Ray, with TLS" in up.stdout
    cluster.address, cluster.tls = f"{LOOPBACK}:{port}", str(tls)
    token = token_file().read_text()

    def join(name: str, *words: str, token: str = token) -> subprocess.CompletedProcess[str]:
        machine = cluster.nodes.get(name) or cluster.machine(name)
        argv = [AF, "fleet", "join", cluster.address, "--name", name, "--slots", "1", *words]
        return subprocess.run(
            argv,
            env=machine.environment,
            input=token,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    joined = join("n1", "--tls", str(theirs))
    assert joined.returncode == 0, joined.stderr
    other = Authority("other").directory(tmp_path / "other")
    strangers = (((), "it needs --tls"), (("--tls", str(other)), "Its certificate is refused here"))
    for words, why in strangers:
        done = join("stranger", *words)
        assert (done.returncode, why in done.stderr) == (1, True), done.stderr
        assert not (cluster.nodes["stranger"].state / "ray/node.json").exists(), "nothing was started"
    done = join("stranger", "--tls", str(theirs), token="0" * 64)
    assert (done.returncode, "Ray did not start here" in done.stderr) == (1, True), "it has no token"

    id = ok(af, "spawn", "--on", "fleet", "--runtime", "demo", "Fix the login").strip()
    ok(af, "wait", id, "--timeout", "300")
    assert (shown(af, id)["host"], shown(af, id)["status"]["state"]) == ("n1", "idle")
    found = listening(short)
    for part in ("gcs_server", "raylet", "agent_farm.engine.holder", "ray::NodeAgent"):
        assert [words for words in found.values() if part in words], f"{part} is not among {found}"
    agents = runtime_env_agents(short)
    assert agents
    for one in agents:  # plain HTTP, for the raylet of its own machine, which has the token
        assert refused_without_token(one)
        found.pop(one, None)
    for one, words in found.items():
        # a worker that has just begun to listen, or ends, drops who comes
        wait_until(
            lambda port=one: greeted(port, tls, named=True) or port not in listening(short), what=words
        )
        assert not greeted(one, tls, named=False), words
    ok(af, "prune", "--stop", "--discard-commits", id)


def test_home_has_more_than_one_address(af: Af, repo: Path, cluster: Cluster, tmp_path: Path) -> None:
    """It reaches a head at 127.0.0.2 from 127.0.0.1, which its certificate does not name."""
    tls, port = Authority().directory(tmp_path / "tls", address="127.0.0.2"), free_port()
    cluster.address, cluster.tls = f"127.0.0.2:{port}", str(tls)
    up = af("fleet", "up", "--host", "127.0.0.2", "--port", str(port), "--slots", "1", "--tls", str(tls))
    assert up.returncode == 0, up.stderr
    assert "0 of 1 slots taken" in ok(af, "fleet", "status")

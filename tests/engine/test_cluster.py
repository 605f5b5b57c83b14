"""`af fleet up`, `join`, `status` and `down`, over real Ray."""

from __future__ import annotations

import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agent_farm.engine.ray_files import token_file
from tests.conftest import Af
from tests.engine.engines import AF, LOOPBACK, Cluster, free_port
from tests.leftovers import processes_of

pytestmark = pytest.mark.slow


def listening(place: Path) -> set[str]:
    """Addresses that processes listen on which have that directory in their words or environment."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if str(place) in f"{process.cmdline()} {process.environ()}":
                found |= {one.laddr.ip for one in process.net_connections("tcp") if one.status == "LISTEN"}
    return found


def test_a_cluster_from_up_to_down(af: Af, repo: Path, cluster: Cluster, short: Path) -> None:
    assert "This farm uses no cluster" in af("fleet", "down").stderr
    port = free_port()
    up = af("fleet", "up", "--port", str(port))
    assert up.returncode == 0, up.stderr
    assert "only listens on 127.0.0.1" in up.stderr
    assert "af fleet join" not in up.stdout
    cluster.address = f"{LOOPBACK}:{port}"
    token = token_file().read_text()
    assert stat.S_IMODE(token_file().stat().st_mode) == 0o600

    node = cluster.join("n1", slots=3)
    status = af("fleet", "status")
    assert "n1               0 of 3 slots taken" in status.stdout, status.stderr
    assert listening(short) <= {"::ffff:127.0.0.1", "127.0.0.1"}
    assert listening(short)
    for socket in cluster.runtime.glob("*/*.sock"):
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    words = b"".join(p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if p.parent.exists())
    assert token.encode() not in words

    stranger = cluster.machine("stranger")
    wrong = subprocess.run(
        [AF, "fleet", "join", cluster.address], env=stranger.environment, input="0" * 64,
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert wrong.returncode == 1, wrong.stdout
    assert "Ray did not start here" in wrong.stderr
    assert "stranger" not in af("fleet", "status").stdout

    again = af("fleet", "up", "--port", str(port))
    assert again.returncode == 0, again.stderr
    assert node.run(str(AF), "fleet", "down").startswith(cluster.address)
    assert processes_of(node.runtime) == []
    assert af("fleet", "down").stdout == f"{cluster.address} has ended here\n"
    assert processes_of(cluster.runtime) == []
    assert "The fleet has no machines" in af("fleet", "status").stderr


def test_what_cannot_be_is_refused_before_anything_starts(af: Af, repo: Path) -> None:
    for words in (
        ("up", "--cluster", "nonsense"),
        ("up", "--host", "-x"),
        ("up", "--tls", "certificates"),
        ("join", "10.0.0.5:99999"),
        ("join", "10.0.0.5:6379", "--name", "a,b=c"),
        ("join", "10.0.0.5:6379", "--name", "local"),
    ):
        done = af("fleet", *words)
        assert done.returncode in (1, 2), words
        assert "Traceback" not in done.stderr

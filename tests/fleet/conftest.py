"""A farm at home, and machines that it reaches by ssh."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fleet.machines import SSH, SSHD, Machines, Node, machine


@pytest.fixture
def machines(tmp_path: Path, home: Path, short: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """`machines("big")`: ssh finds its configuration by the user and not by HOME, so it is told."""
    if SSHD is None or SSH is None:
        pytest.skip("there is no sshd here: apt-get install openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd leaves its privileges
    client = home / "client"
    client.mkdir(mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(client / "key")], check=True)
    shim = home / "bin/ssh"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {SSH} -F {client}/config "$@"\n')
    shim.chmod(0o755)
    runtime = Path(tempfile.mkdtemp(dir=short))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(machine(name, tmp_path, short, client))
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture
def big(machines: Machines, af: Af) -> Node:
    """A machine that is in the fleet."""
    node = machines("big")
    added = af("fleet", "add", "ssh://big")
    assert added.returncode == 0, added.stderr
    return node

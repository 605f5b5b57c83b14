"""Machines of a fleet: a real sshd on loopback for each, with a home, a tmux server and a farm of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import end_processes, end_tmux_servers
from tests.waiting import wait_until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
SSH = shutil.which("ssh")
AF = Path(sys.executable).with_name("af")


@dataclass
class Node:
    """`name` is how ssh knows it; `stop` and `start` are of its sshd alone, as when a cable is pulled."""

    name: str
    directory: Path
    sockets: Path
    port: int
    daemon: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        return self.directory / "home"

    @property
    def program(self) -> Path:
        return self.directory / "bin/af"

    @property
    def farms(self) -> list[Path]:
        return sorted((self.home / ".local/state/agent-farm/fleet").glob("[!.]*"))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": f"{self.program.parent}:{os.environ['PATH']}",
            "TMUX_TMPDIR": str(self.sockets),
            "TMPDIR": str(self.directory / "tmp"),
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "AF_SERVER": "off",
            "SHELL": "/bin/bash",
        }

    def start(self) -> None:
        assert SSHD is not None
        config = self.directory / "sshd_config"
        argv = [SSHD, "-D", "-e", "-f", str(config)]
        with (self.directory / "sshd.log").open("ab") as log:
            self.daemon = subprocess.Popen(argv, stderr=log)
        wait_until(self._listens, timeout=60, what="sshd")

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """No connection is left, and none can be made."""
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
            self.daemon = None
        subprocess.run(["ssh", "-O", "exit", *control(), self.name], check=False, capture_output=True)

    def runs(self, *argv: str | Path) -> None:
        """Whatever is asked there from now on is asked of this program."""
        checkout = Path(__file__).parents[2]
        env = f"PYTHONPATH={checkout} PYTHONDONTWRITEBYTECODE=1"
        self.program.write_text(f'#!/bin/sh\nexec env {env} {shlex.join(map(str, argv))} "$@"\n')

    def is_sound(self) -> None:
        """Its program is `af` again."""
        self.program.write_text(f'#!/bin/sh\nexec {AF} "$@"\n')

    def hang(self) -> None:
        """Whatever is asked there from now on has no answer, until `go_on`."""
        stuck = self.directory / "stuck"
        stuck.touch()
        self.program.write_text(
            f'#!/bin/sh\nwhile [ -e {stuck} ] && [ -d {self.home} ]; do sleep 0.1; done\nexec {AF} "$@"\n'
        )

    def go_on(self) -> None:
        (self.directory / "stuck").unlink()

    def run(self, *words: str) -> str:
        """A program there, as its user would run it."""
        env = {**os.environ, **self.environment}
        return subprocess.run(
            words, cwd=self.farms[0], env=env, check=True, capture_output=True, text=True
        ).stdout


def control() -> list[str]:
    return ["-o", f"ControlPath={os.environ['XDG_RUNTIME_DIR']}/af-ssh-{os.geteuid()}/%C"]


Machines = Callable[[str], Node]


@contextmanager
def machines_for(home: Path, directory: Path, short: Path) -> Iterator[Machines]:
    """`machines("big")`, reached by this process and what it starts, until the block ends.

    ssh finds its configuration by the user and not by HOME, so it is told.
    """
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd leaves its privileges
    client, shim = home / "client", home / "bin/ssh"
    client.mkdir(mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(client / "key")], check=True)
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {SSH} -F {client}/config "$@"\n')
    shim.chmod(0o755)
    runtime = Path(tempfile.mkdtemp(dir=short))
    with pytest.MonkeyPatch.context() as environment, ExitStack() as stack:
        environment.setenv("XDG_RUNTIME_DIR", str(runtime))
        environment.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
        yield lambda name: stack.enter_context(machine(name, directory, short, client))
        stack.close()  # while ssh is still told where its connections are
    shutil.rmtree(runtime, ignore_errors=True)


@contextmanager
def machine(name: str, tmp_path: Path, short: Path, client: Path) -> Iterator[Node]:
    """`client` is the directory with this user's key, and the ssh configuration that names the machine."""
    directory = tmp_path / name
    for place in ("home", "tmp", "bin"):
        (directory / place).mkdir(parents=True)
    sockets = Path(tempfile.mkdtemp(dir=short))
    node = Node(name, directory, sockets, _free_port())
    node.is_sound()
    node.program.chmod(0o755)
    (node.home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
    key = directory / "host_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    kept = " ".join(f'"{variable}={value}"' for variable, value in node.environment.items())
    (directory / "sshd_config").write_text(
        f"Port {node.port}\nListenAddress 127.0.0.1\nHostKey {key}\nPidFile none\nUsePAM no\n"
        f"StrictModes no\nAuthorizedKeysFile {client}/key.pub\nPasswordAuthentication no\n"
        f"PermitRootLogin yes\nMaxStartups 100\nMaxSessions 100\nSetEnv {kept}\n"
    )
    with (client / "config").open("a") as config:
        config.write(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {node.port}\n  IdentityFile {client}/key\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {client}/known\n  HostKeyAlias {name}\n"
        )
    with (client / "known").open("a") as known:
        known.write(f"{name} {key.with_suffix('.pub').read_text()}")
    node.start()
    try:
        yield node
    finally:
        node.stop()
        end_tmux_servers(sockets)
        end_processes(node.home)
        shutil.rmtree(sockets, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])

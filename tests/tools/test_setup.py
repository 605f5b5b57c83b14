"""`tools/setup.sh` on machines that lack something: it installs it, or names the command and stops."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
BASICS = ("sh", "dirname", "cksum", "sed", "cat", "env", "git")


@dataclass(frozen=True)
class Machine:
    """A checkout, and a PATH that holds what was put there and nothing else."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    def program(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def set_up(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "tools/setup.sh", "run"],
            cwd=self.root,
            env={"PATH": str(self.bin), "HOME": str(self.root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def calls(self) -> list[str]:
        log = self.root / "apt-get.log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "checkout")
    machine.bin.mkdir(parents=True)
    (machine.root / "tools").mkdir()
    shutil.copy(PROJECT / "tools/setup.sh", machine.root / "tools")
    shutil.copy(PROJECT / "pyproject.toml", machine.root)
    _link(machine, BASICS)
    machine.program("python3", f'exec "{sys.executable}" "$@"')
    machine.program("apt-get", f'echo "$@" >>"{machine.root}/apt-get.log"; exit 100')
    machine.program("sudo", "exit 1")
    machine.program("id", "echo 1000")
    return machine


def _link(machine: Machine, names: Iterable[str]) -> None:
    for name in names:
        found = shutil.which(name)
        assert found is not None
        (machine.bin / name).symlink_to(found)


def test_without_the_right_to_install_the_command_is_named(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 1
    assert "  sudo apt-get update && sudo apt-get install -y tmux\n" in done.stderr
    assert machine.calls() == []
    assert not (machine.root / ".venv").exists()


@pytest.mark.parametrize("right", ["root", "sudo"])
def test_with_the_right_to_install_apt_is_asked(machine: Machine, right: str) -> None:
    if right == "root":
        machine.program("id", "echo 0")
    else:
        machine.program("sudo", '[ "$1" = -n ] && shift; exec "$@"')
        (machine.bin / "true").symlink_to("/bin/true")
    done = machine.set_up()
    assert done.returncode == 1
    assert "error: apt-get could not install tmux\n" in done.stderr
    verbs = [next(word for word in call.split() if word in ("install", "update")) for call in machine.calls()]
    assert verbs == ["install", "update", "install"]
    assert machine.calls()[0].endswith("install -y --no-install-recommends tmux")


def test_without_apt_the_packages_are_named(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    done = machine.set_up()
    assert done.returncode == 1
    assert "error: These are missing: tmux\n" in done.stderr


def test_an_old_python_is_not_taken(machine: Machine) -> None:
    machine.program("python3", "exit 1")
    done = machine.set_up()
    assert done.returncode == 1
    assert "error: Python 3.11 or newer is needed.\n" in done.stderr

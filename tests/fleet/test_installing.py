"""`af fleet add --install`, from wheels that are sent: no network is needed."""

from __future__ import annotations

import sysconfig
import zipfile
from pathlib import Path

import pytest

import agent_farm
from agent_farm import __version__
from tests.conftest import Af
from tests.fleet.machines import Machines, Node
from tests.fleet.test_fleet import ok

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of what is here, without dependencies; made by hand, since who builds one asks an index."""
    place, about = tmp_path_factory.mktemp("wheels"), f"codev_agent_farm-{__version__}.dist-info"
    package = Path(agent_farm.__file__).parent
    files = {
        f"agent_farm/{file.relative_to(package)}": file.read_bytes()
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    told = f"Metadata-Version: 2.1\nName: codev-agent-farm\nVersion: {__version__}\n"
    files[f"{about}/METADATA"] = told.encode()
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{about}/entry_points.txt"] = b"[console_scripts]\naf = agent_farm.cli.main:main\n"
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD")).encode()
    with zipfile.ZipFile(place / f"codev_agent_farm-{__version__}-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return place


@pytest.fixture
def bare(machines: Machines, tmp_path: Path) -> Node:
    """A machine without af. What af needs is found by Python there, so that no index is asked."""
    node = machines("big")
    node.program.unlink()
    needed = tmp_path / "needed"
    needed.mkdir()
    for one in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not one.name.lower().startswith(("codev_agent_farm", "agent_farm", "_codev", "__editable")):
            (needed / one.name).symlink_to(one)
    config = node.directory / "sshd_config"
    words = f'"PYTHONPATH={needed}" "PIP_NO_INDEX=1"'
    config.write_text(config.read_text().replace("SetEnv ", f"SetEnv {words} "))
    node.stop()
    node.start()
    return node


def test_it_is_installed_when_that_is_asked_for(af: Af, bare: Node, wheels: Path) -> None:
    none = af("fleet", "add", "ssh://big")
    assert none.returncode == 1, none.stdout
    assert "big has no af" in none.stderr
    assert "hint: af fleet add --install ssh://big" in none.stderr
    place = bare.home / ".local/share/agent-farm"
    assert not place.exists()

    broken = af("fleet", "add", "ssh://big", "--install")
    assert broken.returncode == 1
    assert "af could not be installed on big" in broken.stderr
    assert "pip install codev-agent-farm==" in broken.stderr, "what it does is shown before"
    assert "No matching distribution" in broken.stderr

    done = af("fleet", "add", "ssh://big", "--install", "--wheels", str(wheels))
    assert done.returncode == 0, done.stderr
    assert "big: python3 -m venv ~/.local/share/agent-farm/venv" in done.stderr
    assert (place / "venv/bin/af").exists()
    assert not (place / "wheels").exists()
    assert "1 builder" not in ok(af, "fleet", "status")
    id = ok(af, "spawn", "--on", "big", "--runtime", "demo", "Fix the login").strip()
    ok(af, "wait", id, "--timeout", "120")
    assert id in ok(af, "status")
    ok(af, "prune", "--stop", "--discard-commits", id)
    ok(af, "fleet", "remove", "big")
    assert ok(af, "fleet", "add", "ssh://big").startswith("big"), "it is found from then on"


def test_another_version_stays_beside_it(af: Af, bare: Node, wheels: Path) -> None:
    bare.program.write_text("#!/bin/sh\necho af 0.0.1\n")
    bare.program.chmod(0o755)
    done = af("fleet", "add", "ssh://big")
    assert done.returncode == 2
    assert "big has af 0.0.1, and this is" in done.stderr
    ok(af, "fleet", "add", "ssh://big", "--install", "--wheels", str(wheels))
    assert bare.program.read_text().endswith("0.0.1\n")


def test_what_is_no_wheel_of_this_af(af: Af, bare: Node, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, what in (
        (("--install", "--wheels", str(tmp_path / "empty")), "There is no wheel of af"),
        (("--install", "--wheels", __file__), "is neither a wheel nor a directory of wheels"),
        (("--wheels", str(tmp_path)), "--wheels needs --install"),
        (("--install", "--program", "/usr/bin/af"), "--program and --install exclude each other"),
    ):
        done = af("fleet", "add", "ssh://big", *words)
        assert done.returncode in (1, 2)
        assert what in done.stderr, done.stderr
    assert not (bare.home / ".local/share/agent-farm").exists()

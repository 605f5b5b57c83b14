"""`af man`: pages that man can show, one for each command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_farm.cli.command_table import COMMANDS
from tests.conftest import Af


def test_there_is_a_page_for_every_command(af: Af, tmp_path: Path) -> None:
    assert af("man", str(tmp_path)).stdout == f"{tmp_path}/man1\n"
    names = {path.stem for path in (tmp_path / "man1").iterdir()}
    assert {"af", "af-config-set", *(f"af-{name}" for name in COMMANDS)} <= names
    page = (tmp_path / "man1/af-spawn.1").read_text()
    assert page.startswith('.TH "AF\\-SPAWN"') or page.startswith('.TH "AF-SPAWN" "1"')
    assert "\\-\\-runtime" in page


def test_man_takes_the_pages(af: Af, tmp_path: Path) -> None:
    program = shutil.which("groff")
    if program is None:
        pytest.skip("groff is not installed")
    af("man", str(tmp_path))
    for page in (tmp_path / "man1").iterdir():
        done = subprocess.run(
            [program, "-Tutf8", "-man", "-ww", "-z", str(page)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), page


def test_a_page_is_not_wider_than_its_lines(af: Af, tmp_path: Path) -> None:
    """The help is as wide as a terminal: with man's own indent before it, each line would be broken."""
    program = shutil.which("groff")
    if program is None:
        pytest.skip("groff is not installed")
    af("man", str(tmp_path))
    shown = subprocess.run(
        [program, "-Tascii", "-P-c", "-P-b", "-P-u", "-man", str(tmp_path / "man1/af-spawn.1")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert "\nOPTIONS\n  --task TEXT " in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_where_nothing_can_be_written_it_says_so(af: Af, tmp_path: Path) -> None:
    (tmp_path / "man1").write_text("")
    done = af("man", str(tmp_path))
    assert (done.returncode, "error: " in done.stderr, "Traceback" in done.stderr) == (1, True, False)

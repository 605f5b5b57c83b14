"""xterm.js comes from npm when the package is made; without npm the rest works and says what is missing."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
VENDORED = "agent_farm/server/page/vendor/"


def sources(place: Path) -> Path:
    """What a checkout has: nothing that was fetched."""
    ignored = shutil.ignore_patterns("vendor", "__pycache__", "node_modules")
    for name in ("agent_farm", "tools"):
        shutil.copytree(TOP / name, place / name, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(TOP / name, place / name)
    return place


def test_without_npm_the_tool_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = runpy.run_path(str(sources(tmp_path / "src") / "tools/vendor_xterm.py"))
    assert not tool["is_vendored"]()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool["vendor_xterm"]() == "npm is not installed"
    assert not tool["is_vendored"]()


def test_what_is_fetched_is_locked_and_asks_for_nothing_else(tmp_path: Path) -> None:
    place = sources(tmp_path / "src")
    tool = runpy.run_path(str(place / "tools/vendor_xterm.py"))
    assert tool["vendor_xterm"]() is None
    assert tool["is_vendored"]()
    for name in ("xterm.mjs", "addon-fit.mjs"):
        assert "sourceMappingURL" not in (place / VENDORED / name).read_text()
    assert '"integrity": "sha512-' in (place / "tools/xterm/package-lock.json").read_text()


@pytest.mark.slow
def test_the_wheel_contains_the_page_and_xterm(tmp_path: Path) -> None:
    place = sources(tmp_path / "src")
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), "."]
    done = subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False, timeout=170)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in ("xterm.mjs", "xterm.css", "xterm.LICENSE", "addon-fit.mjs", "addon-fit.LICENSE"):
        assert VENDORED + name in names
    page = {path.relative_to(TOP).as_posix() for path in (TOP / "agent_farm/server/page").rglob("*.*")}
    assert {name for name in page if VENDORED not in name} <= names

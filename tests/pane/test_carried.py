"""Ignored output in a new worktree: as it is in the checkout, of its own, and bounded."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.pane import carried
from agent_farm.pane.copies import copy_files
from agent_farm.pane.launchfile import Copy
from tests.gitrepo import write_files


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    write_files(root, {"out/bin/tool": "#!/bin/sh\n", "out/deep/data": "1\n", "out/we ird\n\x1b[1m": "w\n"})
    (root / "out/bin/tool").chmod(0o755)
    (root / "out/empty").mkdir(mode=0o750)
    os.link(root / "out/deep/data", root / "out/deep/same")
    os.utime(root / "out/deep/data", (1, 1))
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def carry(checkout: Path, tree: Path, *names: str, only_missing: bool = False) -> list[str]:
    copies = [Copy(checkout / name, tree / name, "carry") for name in names or ("out",)]
    return list(copy_files(copies, tree, only_missing=only_missing))


def facts(root: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in [root, *root.rglob("*")]:
        one = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        when = None if path.is_symlink() else one.st_mtime_ns
        found[str(path.relative_to(root))] = (one.st_mode, when, content)
    return found


def test_it_is_the_same_and_its_own(checkout: Path, tree: Path) -> None:
    assert carry(checkout, tree) == []
    assert facts(tree / "out") == facts(checkout / "out")
    data = tree / "out/deep/data"
    assert data.stat().st_ino != (checkout / "out/deep/data").stat().st_ino
    assert os.path.samefile(data, tree / "out/deep/same")  # as they are linked to each other at the source
    data.write_text("written in place\n")
    assert (checkout / "out/deep/data").read_text() == "1\n"


ON_BTRFS = """
import os, sys
from pathlib import Path
from tests.pane.test_carried import carry
checkout, tree = Path("checkout"), Path("tree")
(checkout / "out").mkdir(parents=True)
tree.mkdir()
(checkout / "out/large").write_bytes(os.urandom(1 << 25))
def free():
    os.sync()
    return os.statvfs(".").f_bfree * os.statvfs(".").f_frsize
before = free()
assert carry(checkout.resolve(), tree.resolve()) == []
assert before - free() < 1 << 22
with open(tree / "out/large", "r+b") as file:
    file.write(b"in place")
assert (checkout / "out/large").read_bytes()[:8] != b"in place"
assert (checkout / "out/large").read_bytes()[8:] == (tree / "out/large").read_bytes()[8:]
"""


@pytest.mark.slow
def test_files_share_their_blocks_where_the_file_system_can(tmp_path: Path) -> None:
    """On a btrfs in a file, mounted for one process alone."""
    make = shutil.which("mkfs.btrfs", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    image, place = tmp_path / "image", tmp_path / "mounted"
    place.mkdir()
    mount = ["unshare", "-m", "sh", "-c", 'mount -o loop "$0" "$1" && cd "$1" && shift && "$@"', image, place]
    if make is None or os.geteuid():
        pytest.skip("needs mkfs.btrfs, and root to mount what it makes")
    with image.open("wb") as file:
        file.truncate(1 << 28)
    subprocess.run([make, "-q", image], check=True)
    if subprocess.run([*mount, "true"], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    root = Path(__file__).parents[2]
    subprocess.run([*mount, sys.executable, "-c", ON_BTRFS], env={"PYTHONPATH": str(root)}, check=True)


def test_what_was_brought_earlier_is_brought_up_to_date(checkout: Path, tree: Path) -> None:
    """Nothing is written twice, and what the source has no more goes."""
    carry(checkout, tree)
    before = (tree / "out/bin/tool").stat().st_ino
    write_files(checkout, {"out/deep/data": "changed\n", "out/new/file": "n\n", "out/turned/in": "x\n"})
    write_files(tree, {"out/stale/file": "s\n", "out/turned": "a file\n"})
    (checkout / "out/empty").rmdir()
    (checkout / "out/empty").symlink_to("deep")
    assert carry(checkout, tree) == []
    assert facts(tree / "out") == facts(checkout / "out")
    assert (tree / "out/bin/tool").stat().st_ino == before


def test_only_what_is_missing(checkout: Path, tree: Path) -> None:
    write_files(tree, {"out/deep/data": "mine\n", "out/more": "mine\n", "out/empty": "a file\n"})
    write_files(tree, {"out/bin/tool": "#!"})
    (tree / "out/bin/tool").chmod(0)  # a copy that was cut short
    assert carry(checkout, tree, only_missing=True) == []
    assert (tree / "out/deep/data").read_text() == "mine\n"
    assert (tree / "out/more").read_text() == "mine\n"
    assert (tree / "out/empty").read_text() == "a file\n"
    assert (tree / "out/bin/tool").read_text() == "#!/bin/sh\n"
    assert os.access(tree / "out/bin/tool", os.X_OK)


def test_links_mean_what_they_meant(checkout: Path, tree: Path) -> None:
    """Into the checkout: the worktree's own. Out of it: the same place. Nothing is written by way of one."""
    links = {
        "near": "deep/data",
        "package": "../packages/one",
        "whole": f"{checkout}/packages/one",
        "out": "../../elsewhere",
        "system": "/usr/bin/../bin/env",
        "loop": "loop",
    }
    for name, target in links.items():
        (checkout / "out" / name).symlink_to(target)
    (tree / "out").mkdir()
    (tree / "out/deep").symlink_to(checkout / "out/deep")
    assert carry(checkout, tree) == []
    found = {name: os.readlink(tree / "out" / name) for name in links}
    assert found == links | {
        "whole": f"{tree}/packages/one",
        "out": str(checkout.parent / "elsewhere"),
    }
    assert not (tree / "out/deep").is_symlink()


def test_a_virtual_environment_runs_its_own_code(checkout: Path, tree: Path) -> None:
    site = "env/lib/python3/site-packages"
    write_files(
        checkout,
        {
            "env/pyvenv.cfg": "home = /usr/bin\n",
            "env/bin/tool": f"#!{checkout}/env/bin/python\n# {checkout}-other\n",
            f"{site}/__editable__.pth": str(checkout),
            f"{site}/notes.txt": str(checkout),
        },
    )
    (checkout / "env/bin/tool").chmod(0o755)
    for _ in range(2):
        assert carry(checkout, tree, "env") == []
        assert (tree / "env/bin/tool").read_text() == f"#!{tree}/env/bin/python\n# {checkout}-other\n"
        assert (tree / site / "__editable__.pth").read_text() == str(tree)
        assert (tree / site / "notes.txt").read_text() == str(checkout)
        assert stat.S_IMODE((tree / "env/bin/tool").stat().st_mode) == 0o755


def test_what_is_no_file_or_not_ours_is_left_out_by_name(checkout: Path, tree: Path) -> None:
    os.mkfifo(checkout / "out/pipe")
    expected = ["neither file, directory nor symlink"]
    if os.geteuid() == 0:
        os.chown(checkout / "out/bin", 12345, -1)
        expected = ["belongs to another user", *expected]
    told = carry(checkout, tree)
    assert len(told) == len(expected)
    assert all(words in line for words, line in zip(expected, told, strict=True))
    assert not os.path.lexists(tree / "out/pipe")
    assert (tree / "out/deep/data").exists()


@pytest.mark.parametrize(
    ("bound", "value", "words"),
    [
        ("MOST_ENTRIES", 3, "has more than 3 entries"),
        ("MOST_BYTES", 1, "is larger than"),
        ("MOST_SECONDS", -1.0, "takes longer than"),
        ("_LEAST_FREE", 1 << 60, "would leave less than"),
    ],
)
def test_what_is_too_much_is_left_out_whole(
    checkout: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float, words: str
) -> None:
    monkeypatch.setattr(carried, "_EVERY", 1)
    monkeypatch.setattr(carried, bound, value)
    (told,) = carry(checkout, tree)
    assert told.startswith("not carried: 'out'")
    assert words in told
    assert not os.path.lexists(tree / "out")

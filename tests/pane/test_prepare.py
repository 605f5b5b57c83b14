"""Copied files and the setup command: never over anything, never outside, and seen when they fail."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from agent_farm.pane.copies import copy_files
from agent_farm.pane.launchfile import Copy
from tests.pane.stage import PROGRAMS, Stage
from tests.waiting import wait_until


@pytest.fixture
def main_checkout(tmp_path: Path) -> Path:
    root = tmp_path / "main"
    (root / "deps/bin").mkdir(parents=True)
    (root / ".env").write_text("KEY=1\n")
    (root / ".env").chmod(0o640)
    (root / "deps/bin/tool").write_text("#!/bin/sh\n")
    (root / "deps/bin/tool").chmod(0o755)
    (root / "deps/link").symlink_to("../elsewhere")
    (root / "deps/empty").mkdir()
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "worktree").mkdir()
    return tmp_path / "worktree"


def copied(tree: Path, *pairs: tuple[Path, Path]) -> list[str]:
    return list(copy_files([Copy(source, target) for source, target in pairs], tree))


def test_files_directories_and_symlinks_are_copied_as_they_are(main_checkout: Path, tree: Path) -> None:
    pairs = [(main_checkout / name, tree / "sub" / name) for name in (".env", "deps")]
    assert copied(tree, *pairs) == []
    env = tree / "sub/.env"
    assert (env.read_text(), stat.S_IMODE(env.stat().st_mode)) == ("KEY=1\n", 0o640)
    assert env.stat().st_mtime == (main_checkout / ".env").stat().st_mtime
    assert os.access(tree / "sub/deps/bin/tool", os.X_OK)
    assert os.readlink(tree / "sub/deps/link") == "../elsewhere"
    assert (tree / "sub/deps/empty").is_dir()
    assert env.stat().st_nlink == 1
    env.write_text("KEY=2\n")
    assert (main_checkout / ".env").read_text() == "KEY=1\n"


def test_nothing_is_overwritten(main_checkout: Path, tree: Path) -> None:
    (tree / ".env").write_text("mine")
    (tree / "deps/bin").mkdir(parents=True)
    (tree / "deps/bin/tool").symlink_to("/no/where")
    (tree / "deps/link").write_text("mine")
    assert copied(tree, *((main_checkout / name, tree / name) for name in (".env", "deps"))) == []
    assert (tree / "deps/link").read_text() == "mine"
    assert (tree / ".env").read_text() == "mine"
    assert os.readlink(tree / "deps/bin/tool") == "/no/where"
    assert (tree / "deps/empty").is_dir()
    assert not Path("/no/where").exists()


@pytest.mark.parametrize("where", ["deps", "deps/bin", "deps/bin/tool"])
def test_no_symlink_leads_a_copy_out_of_the_worktree(
    main_checkout: Path, tree: Path, tmp_path: Path, where: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tree / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    said = copied(
        tree, (main_checkout / "deps", tree / "deps"), (main_checkout / ".env", tree / "deps/bin/.env")
    )
    assert list(outside.iterdir()) == []
    assert said or where == "deps/bin/tool"


@pytest.mark.parametrize("target", ["../out", "/etc/out", "a/../../out", "."])
def test_targets_outside_are_refused(main_checkout: Path, tree: Path, target: str) -> None:
    said = copied(tree, (main_checkout / ".env", tree / target))
    assert len(said) == 1
    assert "leads out of the worktree" in said[0]
    assert not (tree.parent / "out").exists()


def test_what_vanished_is_said_and_the_rest_copied(main_checkout: Path, tree: Path) -> None:
    said = copied(tree, (main_checkout / "gone", tree / "gone"), (main_checkout / ".env", tree / ".env"))
    assert said == [f"not copied: {main_checkout / 'gone'} is gone"]
    assert (tree / ".env").exists()


def test_special_files_are_said(main_checkout: Path, tree: Path) -> None:
    os.mkfifo(main_checkout / "pipe")
    assert "neither file" in copied(tree, (main_checkout / "pipe", tree / "pipe"))[0]


def test_a_large_file_is_whole_and_leaves_nothing_beside_it(main_checkout: Path, tree: Path) -> None:
    (main_checkout / "big").write_bytes(os.urandom(3 << 20))
    assert copied(tree, (main_checkout / "big", tree / "big")) == []
    assert (tree / "big").read_bytes() == (main_checkout / "big").read_bytes()
    assert [path.name for path in tree.iterdir()] == ["big"]


def test_setup_runs_before_the_runtime_in_the_worktree(stage: Stage) -> None:
    (stage.worktree / "sub").mkdir()
    stage.start_program(
        "0", setup='pwd > made; echo "$0 $HOME" $((1+1)) >&2', cwd=str(stage.worktree / "sub")
    )
    assert stage.exit()["exit_code"] == 0
    assert (stage.worktree / "made").read_text().strip() == str(stage.worktree)
    stage.wait_for_shell()
    assert f"/bin/sh {os.environ['HOME']} 2" in stage.screen()
    assert stage.states() == ["preparing", "working", "exited"]


def test_copies_are_there_when_setup_runs(stage: Stage, main_checkout: Path) -> None:
    pair = {"from": str(main_checkout / ".env"), "to": str(stage.worktree / ".env")}
    gone = {"from": str(main_checkout / "gone"), "to": str(stage.worktree / "gone")}
    stage.start_program("0", copies=[pair, gone], setup="cat .env > seen")
    assert stage.exit()["exit_code"] == 0
    assert (stage.worktree / "seen").read_text() == "KEY=1\n"
    assert [event["reason"] for event in stage.events() if event["event"] == "copy"] == [
        f"not copied: {main_checkout / 'gone'} is gone"
    ]
    stage.wait_for_shell()
    assert "gone is gone" in stage.screen().replace("\n", "")


def test_a_failing_setup_starts_nothing(stage: Stage) -> None:
    stage.start_program("stay", setup="echo broken; exit 7")
    end = stage.wait_for_end()
    assert (end["state"], end["reason"]) == ("failed", "setup exited 7")
    stage.wait_for_shell()
    assert "broken" in stage.screen()
    assert "setup exited 7" in stage.screen()
    assert not stage.facts_file.exists()
    assert not (stage.run / "exit.json").exists()


def test_ctrl_c_ends_setup_and_starts_nothing(stage: Stage) -> None:
    stage.start_program("stay", setup="echo begun; sleep 600")
    wait_until(lambda: "\nbegun" in stage.screen(), what="setup")
    stage.type("C-c")
    assert stage.wait_for_end()["reason"].startswith("setup ")
    stage.wait_for_shell()
    assert not stage.facts_file.exists()


def test_setup_may_ask(stage: Stage) -> None:
    stage.start_program("0", setup="read answer; echo got-$answer > said")
    wait_until(lambda: "setup:" in stage.screen(), what="setup")
    stage.type("yes", "Enter")
    assert stage.exit()["exit_code"] == 0
    assert (stage.worktree / "said").read_text() == "got-yes\n"


def test_a_disk_that_takes_no_records_does_not_end_the_runtime(stage: Stage) -> None:
    stage.write_launch()
    (stage.run / "events.jsonl").mkdir()
    (stage.run / "exit.json").mkdir()
    stage.start(sys.executable, "-I", PROGRAMS, "0", str(stage.facts_file))
    stage.wait_for_shell()
    assert stage.facts_file.exists()
    assert "not recorded" in stage.screen()
    assert "Traceback" not in stage.screen()

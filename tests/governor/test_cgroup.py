"""Builds have cgroups where the tree is delegated: in plain directories, and in the kernel's if it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent_farm.governor import cgroup
from agent_farm.governor.cgroup import NAME, group_of_one, memory_of_group
from tests.governor.conftest import Tree
from tests.waiting import wait_until

MEGABYTE = 1 << 20


def name_of(pid: int) -> str:
    return f"{pid}-slot-0"


def test_a_build_has_a_group_of_its_own_below_one_for_all_and_beside_the_process(tree: Tree) -> None:
    shared = tree.make(f"slice/{NAME}")
    with group_of_one(name_of(os.getpid()), 1000, tree.proc) as group:
        assert group == shared / name_of(os.getpid())
        assert group.is_dir()
        assert (shared / "memory.high").read_text() == "1000"
        assert (shared / "memory.max").read_text() == "1025"
        assert (shared / "cpu.weight").read_text() == "10"
        assert (shared / "cgroup.subtree_control").read_text()
    assert not group.exists()
    assert shared.is_dir()


def test_what_a_killed_build_left_is_removed_and_what_runs_stays(tree: Tree) -> None:
    shared = tree.make(f"slice/{NAME}")
    gone, alive = shared / name_of(4_000_000), shared / name_of(os.getppid())
    (other := shared / "somebody's").mkdir()
    gone.mkdir()
    alive.mkdir()
    with group_of_one(name_of(os.getpid()), 1000, tree.proc):
        assert not gone.exists()
        assert alive.is_dir()
        assert other.is_dir()


def test_who_is_in_the_group_of_a_build_already_makes_none_below_it(tree: Tree) -> None:
    """A tmux server that a build has started stays there, with all its panes."""
    (tree.make(f"slice/{NAME}/1-slot-0").parent / "cgroup.procs").touch()
    tree.stand_in(f"/slice/{NAME}/1-slot-0")
    with group_of_one(name_of(os.getpid()), 1000, tree.proc) as group:
        assert group == tree.top / "slice" / NAME / name_of(os.getpid())


def _no_memory_controller(tree: Tree) -> None:
    (tree.top / "slice/pane/memory.high").unlink()


def _not_delegated(tree: Tree) -> None:
    (tree.top / "slice/cgroup.procs").unlink()  # as unwritable as it gets for root


def _in_the_topmost(tree: Tree) -> None:
    (tree.top / "memory.high").touch()  # of a container
    tree.stand_in("/")


def _outside_of_the_namespace(tree: Tree) -> None:
    tree.stand_in("/../slice/pane")


def _not_mounted(tree: Tree) -> None:
    tree.mount("tmpfs")


def _another_part_mounted(tree: Tree) -> None:
    tree.mount(root="/elsewhere")


def _only_version_one(tree: Tree) -> None:
    tree.stand_in("/slice/pane", hierarchy="4:memory")


def _nothing_to_read(tree: Tree) -> None:
    (tree.proc / "self/cgroup").unlink()


def _nonsense(tree: Tree) -> None:
    (tree.proc / "self/mountinfo").write_text("cgroup2 - cgroup2 \n")


@pytest.mark.parametrize(
    "change",
    [
        _no_memory_controller, _not_delegated, _in_the_topmost, _outside_of_the_namespace, _not_mounted,
        _another_part_mounted, _only_version_one, _nothing_to_read, _nonsense,
    ],
)  # fmt: skip
def test_elsewhere_nothing_happens(tree: Tree, change: Callable[[Tree], None]) -> None:
    change(tree)
    before = sorted(tree.top.rglob("*"))
    with group_of_one(name_of(os.getpid()), 1000, tree.proc) as group:
        assert group is None
    assert sorted(tree.top.rglob("*")) == before


def test_part_of_a_tree_that_is_mounted_is_enough(tree: Tree) -> None:
    tree.stand_in("/machine/one/slice/pane")
    tree.mount(root="/machine/one")
    with group_of_one(name_of(os.getpid()), 1000, tree.proc) as group:
        assert group == tree.top / "slice" / NAME / name_of(os.getpid())


@pytest.mark.parametrize("path", ["/slice/pane", f"/slice/{NAME}", f"/slice/{NAME}/1-slot-0"])
def test_only_a_group_of_a_build_says_what_a_build_has_taken(tree: Tree, path: str) -> None:
    one = tree.build(77)
    tree.stand_in(path, pid=77)
    for group in (one, one.parent, tree.top / "slice/pane"):
        (group / "memory.stat").write_text("anon 5\nkernel 100\nshmem 2\n")
    assert memory_of_group(77, tree.proc) == (7 if "slot" in path else None)


# The kernel's own groups. A person's running builds are left alone: everything is in a group of the test's.


def run_in(group: Path, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(words, preexec_fn=lambda: cgroup.enter(group), stdin=pipe, stdout=pipe, text=True)


@pytest.fixture
def pane(tmp_path: Path) -> Iterator[Path]:
    """A group as a pane's would be, alone in a delegated one."""
    top = None
    with suppress(OSError), group_of_one(f"{os.getpid()}-probe", None) as probe:
        top = probe and probe.parent.parent / f"agent-farm-test-{os.getpid()}"
    if top is None:
        pytest.skip("no part of the cgroup tree (v2) is delegated here, or it has no memory controller")
    (top / "pane").mkdir(parents=True)
    (top / "cgroup.subtree_control").write_text("+memory")
    yield top / "pane"
    for path in (*sorted(top.rglob("*/"), reverse=True), top):
        if path.is_dir():
            wait_until(lambda path=path: _removed(path), what=f"the end of all in {path}")  # type: ignore[misc]


def _removed(path: Path) -> bool:
    with suppress(OSError):
        path.rmdir()
    return not path.exists()


@pytest.fixture
def proc(pane: Path, tmp_path: Path) -> Path:
    """As a process in that group sees it."""
    inside = run_in(pane, "cat", "/proc/self/cgroup")
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text(inside.communicate()[0])
    (tmp_path / "self/mountinfo").write_text(Path("/proc/self/mountinfo").read_text())
    return tmp_path


def test_the_kernel_ends_one_build_as_a_whole_and_no_other_process(pane: Path, proc: Path) -> None:
    taker = "import sys; taken = b'x' * (%d << 20); print('taken', flush=True); sys.stdin.read()"
    agent = run_in(pane, sys.executable, "-c", taker % 200)
    with group_of_one(name_of(os.getpid()), 80 * MEGABYTE, proc) as group:
        assert group is not None
        small = subprocess.Popen(["sleep", "600"], preexec_fn=lambda: cgroup.enter(group))
        large = run_in(group, sys.executable, "-c", taker % 300)
        assert large.wait(timeout=300) == -signal.SIGKILL
        assert small.wait(timeout=60) == -signal.SIGKILL
        assert agent.stdout is not None
        assert agent.stdout.readline() == "taken\n"
        large.communicate()
    agent.communicate("")
    assert agent.returncode == 0
    assert not group.exists()


def test_what_a_build_has_taken_is_known(pane: Path, proc: Path) -> None:
    taker = "import sys; taken = b'x' * (50 << 20); print('taken', flush=True); sys.stdin.read()"
    with group_of_one(name_of(os.getpid()), 500 * MEGABYTE, proc) as group:
        assert group is not None
        build = run_in(group, sys.executable, "-c", taker)
        assert build.stdout is not None
        assert build.stdout.readline() == "taken\n"
        assert 50 * MEGABYTE < (memory_of_group(build.pid) or 0) < 100 * MEGABYTE
        build.communicate("")

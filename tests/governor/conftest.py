"""A tree of cgroups as plain directories, and a /proc that says where a process is in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_farm.governor.cgroup import NAME

CONTROLS = ("cgroup.procs", "cgroup.subtree_control", "cpu.weight", "memory.high", "memory.max")


@dataclass(frozen=True)
class Tree:
    """`/slice/pane` of the tree is where this process is."""

    proc: Path
    top: Path

    def make(self, name: str) -> Path:
        (group := self.top / name).mkdir(parents=True)
        for control in CONTROLS:
            (group / control).touch()
        return group

    def stand_in(self, path: str, *, pid: object = "self", hierarchy: str = "0:") -> None:
        (self.proc / str(pid)).mkdir(exist_ok=True)
        (self.proc / str(pid) / "cgroup").write_text(f"{hierarchy}:{path}\n")

    def mount(self, kind: str = "cgroup2", root: str = "/") -> None:
        lines = (
            "23 1 0:21 / /proc rw - proc proc rw",
            f"31 23 0:28 {root} {self.top} rw,nosuid shared:4 - {kind} {kind} rw",
        )
        (self.proc / "self").mkdir(exist_ok=True)
        (self.proc / "self/mountinfo").write_text("\n".join(lines) + "\n")

    def build(self, pid: int) -> Path:
        """The group of a build of which `pid` is a process."""
        self.stand_in(f"/slice/{NAME}/1-slot-0", pid=pid)
        (one := self.top / "slice" / NAME / "1-slot-0").mkdir(parents=True, exist_ok=True)
        return one


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path, tmp_path / "cgroups")
    tree.make("slice/pane")
    (tree.top / "slice/cgroup.procs").touch()
    tree.mount()
    tree.stand_in("/slice/pane")
    return tree

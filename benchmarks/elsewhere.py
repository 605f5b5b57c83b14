"""A repository of 20,000 files: the first spawn on another machine, and the next ones against one here.

The machine is a real sshd on loopback with a home, a tmux server and a farm of its own: what it does takes
the time of this one. Spawns here and there take turns, first with a checkout each, then from worktrees that
are kept ready. `BENCH_FILES=2000` asks for another number of files, `BENCH_ROUNDS=9` for more rounds than 7.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.stage import AF, Rows, Stage, stage
from tests.fleet.machines import SSHD, Node, machines_for
from tests.waiting import wait_until

FILES = int(os.environ.get("BENCH_FILES", "20000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
_READY = 2  # worktrees that are kept ready where a checkout is dear


def main() -> Rows:
    if SSHD is None:
        return [("left out", "there is no sshd here: apt-get install openssh-server")]
    with stage(files=FILES) as made, _machine(made) as (on, node):
        on.run(AF, "fleet", "add", "ssh://big")
        _keep_ready(on, node, 0)
        first, packs = _timed(on, "--on", "big"), _objects(node)
        rows = [(f"{FILES:,} files: the first spawn there", f"{first:.2f} s, {packs}")]
        for ready, told in ((0, "with a checkout"), (_READY, "from a ready worktree")):
            _keep_ready(on, node, ready)
            rows.append((f"the next ones / af spawn here, {told}", _compared(on, node, ready)))
    return rows


def _compared(on: Stage, node: Node, ready: int) -> str:
    pairs = [_pair(on, node, ready) for _ in range(ROUNDS)]
    here, there = ([pair[place] for pair in pairs] for place in (0, 1))
    ratios = [there / here for here, there in pairs]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}; {median(there):.2f} s, {median(here):.2f} s"
    return f"{median(ratios):.2f} (bar: 1.20; {spread})"


def _keep_ready(on: Stage, node: Node, ready: int) -> None:
    """So many worktrees, here and there, whatever a checkout takes."""
    text = f"[pool]\nsize = {ready}\nauto = false\n"
    for home in (on.directory, node.home):
        file = home / ".config/agent-farm/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if ready:
        _timed(on), _timed(on, "--on", "big")  # which begin to make them


@contextmanager
def _machine(made: Stage) -> Iterator[tuple[Stage, Node]]:
    short = Path(tempfile.mkdtemp(prefix="af-bench-"))
    try:
        with machines_for(made.directory, made.directory, short) as machines:
            node = machines("big")
            own = {name: os.environ[name] for name in ("PATH", "XDG_RUNTIME_DIR")}
            yield Stage(made.directory, {**made.env, **own, "AF_SERVER": "off"}), node
    finally:
        shutil.rmtree(short, ignore_errors=True)


def _pair(on: Stage, node: Node, ready: int) -> tuple[float, float]:
    roots = (on.repository, node.farms[0])
    wait_until(
        lambda: all(_ready(root) == ready for root in roots), timeout=600, what="worktrees that are ready"
    )
    return _timed(on), _timed(on, "--on", "big")


def _timed(on: Stage, *words: str) -> float:
    begin = time.perf_counter()
    on.run(AF, "spawn", "--shell", "--runtime", "demo", *words)
    return time.perf_counter() - begin


def _ready(root: Path) -> int:
    return len(list((root / ".builders/.pool").glob("*.ready")))


def _objects(node: Node) -> str:
    """What has come there."""
    store = node.farms[0] / ".git/objects"
    packs, loose = list(store.glob("pack/*.pack")), list(store.glob("[0-9a-f][0-9a-f]/*"))
    size = sum(pack.stat().st_size for pack in packs)
    return f"{len(packs)} pack of {size / 1e6:.1f} MB, {len(loose)} objects beside it"

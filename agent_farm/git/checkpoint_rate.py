"""Limits how often large files are stored in checkpoints: one that keeps changing is not stored every time.

Whatever is stored stays until git collects it, here and at home. So each worktree has a budget for large
files; once it is spent, a checkpoint holds such a file as it was last stored.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from agent_farm.builders.ref_names import ObjectName
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError
from agent_farm.git.checkout import BuilderTree
from agent_farm.git.git_process import paths_of

LARGE = 256 * 1024
RATE = 20_000  # bytes in a second: 1.7 GB in a day
FOR_CHANGED, FOR_NEW = 256 * 1024 * 1024, 1024 * 1024 * 1024  # the debt from which on such files wait

_Mode = Annotated[str, Meta(pattern=r"\A100(644|755)\Z")]


class Taken(Struct, frozen=True):
    """A large file as it was last stored; `mark` changes whenever the file does."""

    mark: str
    mode: _Mode
    blob: ObjectName
    at: float


class Budget(Struct, frozen=True):
    """`debt` is how many bytes of large files were stored up to `at`, less what time has paid off."""

    files: dict[str, Taken] = {}
    debt: float = 0.0
    at: float = 0.0


class Chosen(Struct, frozen=True):
    """Which large files are stored now. Those in `waits` are stored later; `again` has the ones among them
    that were stored before, and appear in the checkpoint as they were."""

    taken: dict[str, str]
    again: Mapping[str, Taken]
    waits: tuple[str, ...]
    debt: float
    now: float


def budget_of(tree: BuilderTree) -> Budget:
    """The recorded budget; a new one if it cannot be read, since it lies where the builder can write."""
    with suppress(AgentFarmError):
        return load_if_whole(_file(tree), Budget) or Budget()
    return Budget()


def choose(tree: BuilderTree, budget: Budget, paths: Iterable[str]) -> Chosen:
    """Which large files among `paths` are stored now."""
    now = time.time()
    debt = max(0.0, min(budget.debt, 2.0 * FOR_NEW) - RATE * max(0.0, now - budget.at))
    taken, again, waits = dict[str, str](), dict[str, Taken](), list[str]()
    found = {path: facts for path in paths if (facts := _large(tree.path / path)) is not None}
    for path in sorted(found, key=lambda path: budget.files[path].at if path in budget.files else 0.0):
        (mark, size), known = found[path], budget.files.get(path)
        if known is not None and known.mark == mark:
            taken[path] = mark  # stored already
        elif debt < (FOR_NEW if known is None else FOR_CHANGED):
            taken[path] = mark
            debt += size
        else:
            waits.append(path)
            if known is not None:
                again[path] = known
    return Chosen(taken, again, tuple(waits), debt, now)


def note_taken(tree: BuilderTree, budget: Budget, chosen: Chosen, own: Mapping[str, str]) -> None:
    """Record what was stored; `own` is the environment that names the index it was stored in."""
    if not chosen.taken:
        return
    files = {path: one for path, one in budget.files.items() if _large(tree.path / path)}
    for line in paths_of(tree.run("ls-files", "--stage", "-z", env=own)):
        facts, _, path = line.partition("\t")
        mode, blob, _ = facts.split()
        if path in chosen.taken and mode.startswith("100"):
            files[path] = Taken(chosen.taken[path], mode, blob, chosen.now)
    store(_file(tree), Budget(files, chosen.debt, chosen.now))


def lines_again(tree: BuilderTree, chosen: Chosen) -> str:
    """Index lines for files stored earlier, if git still has their content."""
    asked = "".join(f"{one.blob}\n" for one in chosen.again.values())
    if not asked:
        return ""
    kinds = tree.run("cat-file", "--batch-check=%(objecttype)", input=asked.encode()).splitlines()
    pairs = zip(chosen.again.items(), kinds, strict=True)
    return "".join(f"{one.mode} {one.blob}\t{path}\0" for (path, one), kind in pairs if kind == "blob")


def _large(path: Path) -> tuple[str, int] | None:
    try:
        facts = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(facts.st_mode) or facts.st_size < LARGE:
        return None
    return f"{facts.st_ino} {facts.st_mtime_ns} {facts.st_size}", facts.st_size


def _file(tree: BuilderTree) -> Path:
    return tree.git_dir / "agent-farm-checkpoint-large"

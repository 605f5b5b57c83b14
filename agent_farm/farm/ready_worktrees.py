"""Worktrees kept ready, so that a spawn does not wait for the checkout of a large repository.

A slot is a detached worktree `.builders/.pool/<n>`; its file `<n>.ready` names the commit it holds and is
written last. A spawn takes one under the pool's lock; a detached `af` makes the next ones.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, is_locked, make_directory, replace_file
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.farm.checkout_cost import affordable, measured, pool_of
from agent_farm.farm.deletion import delete_tree
from agent_farm.farm.farm import Farm
from agent_farm.farm.home import settle_home
from agent_farm.farm.waiting import start_another
from agent_farm.git.entries import tree_bytes
from agent_farm.git.half_made import drop_half_made
from agent_farm.git.worktrees import (
    add_slot,
    drop_registration,
    list_worktrees,
    move_slot,
    put_on_new_branch,
    require_free,
    update_slot,
)

FILL_SECONDS = 120.0


def take_slot(farm: Farm, record: BuilderRecord, commit: str, builder_lock: int) -> bool:
    """Turn a slot into the builder's worktree at `commit`; False when there is none to take.

    One that holds another commit is brought there: of a base that moved a little, little is written.
    """
    if not record.new_branch or not pool_directory(farm).is_dir():
        return False
    path = record.worktree_path
    with file_lock(_lock(farm), inherit=True) as pool_lock:
        ready = _ready(farm)
        slot = next((slot for slot, held in ready.items() if held == commit), next(iter(ready), None))
        if slot is None:
            return False
        _marker(slot).unlink()
        try:
            if ready[slot] != commit:  # here, where it is nobody's: a kill leaves no builder that holds files
                update_slot(farm.repository, slot, commit, fds=(pool_lock,))
            with file_lock(farm.paths.worktree_lock):
                require_free(path)
                move_slot(farm.repository, slot, path)
        except (AgentFarmError, OSError):  # somebody deleted the slot, or wrote in it; `fill` clears it away
            if os.path.lexists(path / ".git"):
                raise
            return False
    with file_lock(farm.paths.worktree_lock, inherit=True) as worktree_lock:
        put_on_new_branch(farm.repository, path, record.branch, commit, fds=(builder_lock, worktree_lock))
    return True


def refill_later(farm: Farm) -> None:
    """Have another process make the pool whole; nobody waits for it."""
    if not pool_of(farm).size and not pool_directory(farm).is_dir():
        return
    start_another(farm, "pool", "fill")


def fill(farm: Farm) -> int:
    """Make, or bring up to date, as many slots as are to be ready, and remove others; how many are."""
    try:
        with file_lock(farm.paths.locks / "pool-fill.lock", wait=0):
            _fill(farm, farm.repository.head(farm.root).commit)
    except LockTaken:
        pass  # another process is at it
    return len(_ready(farm))


def drain(farm: Farm) -> int:
    """Remove every slot; returns how many there were."""
    with file_lock(farm.paths.locks / "pool-fill.lock", wait=FILL_SECONDS):
        ready = _ready(farm)
        gone = [slot for slot in ready if _claim(farm, slot)]
        if pool_directory(farm).is_dir():
            _remove_half_made(farm)
    return len(gone)


def half_made_slots(farm: Farm) -> list[Path]:
    """Slots without a marker, unless a process is making them just now."""
    if not pool_directory(farm).is_dir() or is_locked(farm.paths.locks / "pool-fill.lock"):
        return []
    ready = _ready(farm)
    return sorted(path for path in pool_directory(farm).glob("[!.]*") if path.is_dir() and path not in ready)


def remove_half_made_slots(farm: Farm) -> None:
    with file_lock(farm.paths.locks / "pool-fill.lock", wait=0):
        _remove_half_made(farm)


def _fill(farm: Farm, commit: str) -> None:
    settle_home(farm.repository)
    make_directory(pool_directory(farm))
    _remove_half_made(farm)
    for slot, held in _ready(farm).items():
        if held != commit and _claim(farm, slot):
            update_slot(farm.repository, slot, commit)
            replace_file(_marker(slot), commit)
    wanted, number = wanted_slots(farm, commit), 0
    for slot in list(_ready(farm))[wanted:]:
        if _claim(farm, slot):
            _remove_slot(farm, slot)
    while len(_ready(farm)) < wanted:
        farm.step("Checking out", len(_ready(farm)), wanted)
        slot = pool_directory(farm) / str(number)
        number += 1
        if not slot.exists():
            with measured(farm):
                add_slot(farm.repository, slot, commit, lock_path=farm.paths.worktree_lock)
            replace_file(_marker(slot), commit)
    if not wanted:
        with suppress(OSError):  # something else is in it
            pool_directory(farm).rmdir()


def wanted_slots(farm: Farm, commit: str) -> int:
    """As many as were asked for; without being asked, as many as the disk has room for."""
    size = pool_of(farm).size
    if not size or farm.settings.number("pool.size"):
        return size
    return min(size, affordable(farm, tree_bytes(farm.repository, commit)))


def count_ready(farm: Farm) -> int:
    return len(_ready(farm))


def _claim(farm: Farm, slot: Path) -> bool:
    with file_lock(_lock(farm)):
        held = _marker(slot).exists()
        _marker(slot).unlink(missing_ok=True)
        return held


def _remove_half_made(farm: Farm) -> None:
    """A slot without its marker was being made by a process that died; nobody has worked in it.

    Spawns take slots under the pool's lock, and only one process fills: nobody else has such a slot now.
    """
    with file_lock(_lock(farm)):
        ready = _ready(farm)
        for marker in pool_directory(farm).glob("*.ready"):
            if marker.with_suffix("") not in ready:
                marker.unlink()
        there = (path for path in pool_directory(farm).iterdir() if path.is_dir())
        for slot in {*there, *_registered(farm)} - ready.keys():
            _remove_slot(farm, slot)


def _registered(farm: Farm) -> set[Path]:
    """Slots that git knows, or began to know: it reads none while one of them is half made."""
    numbers = range(max(farm.settings.number("pool.size"), *_numbers(farm), 2))
    with file_lock(farm.paths.worktree_lock):
        for number in numbers:
            drop_half_made(farm.repository, pool_directory(farm) / str(number))
    paths = (tree.path for tree in list_worktrees(farm.repository))
    return {path for path in paths if path.parent == pool_directory(farm)}


def _numbers(farm: Farm) -> list[int]:
    return [int(path.name) + 1 for path in pool_directory(farm).iterdir() if path.name.isdecimal()]


def _remove_slot(farm: Farm, slot: Path) -> None:
    with file_lock(farm.paths.worktree_lock):
        drop_half_made(farm.repository, slot)
    if slot.is_dir():
        delete_tree(slot)
    drop_registration(farm.repository, slot)


def _ready(farm: Farm) -> dict[Path, str]:
    markers = sorted(pool_directory(farm).glob("*.ready")) if pool_directory(farm).is_dir() else []
    found = {}
    for marker in markers:
        slot = marker.with_suffix("")
        with suppress(FileNotFoundError):
            if slot.is_dir():
                found[slot] = marker.read_text()
    return found


def pool_directory(farm: Farm) -> Path:
    return farm.paths.worktrees / ".pool"


def _lock(farm: Farm) -> Path:
    return farm.paths.locks / "pool.lock"


def _marker(slot: Path) -> Path:
    return slot.with_name(f"{slot.name}.ready")

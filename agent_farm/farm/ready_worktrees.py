"""Keeps worktrees ready, so that a spawn does not wait for the checkout of a large repository.

A slot is a detached worktree `.builders/.pool/<n>`; its file `<n>.ready` says what it contains and is written
last. A spawn takes one under the pool's lock; a detached `af` makes new ones.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, is_locked, make_directory
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.farm.carried_output import bring_output, declared_output, fitting_output, output_bytes
from agent_farm.farm.checkout_cost import (
    MOST_TOLD,
    POOL,
    Pool,
    affordable,
    measured,
    pool_directory,
    pool_of,
    refill_later,
)
from agent_farm.farm.deletion import delete_tree
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.home import settle_home
from agent_farm.farm.sparse_directories import require_directories
from agent_farm.git.checkout import linked_tree
from agent_farm.git.entries import tree_bytes
from agent_farm.git.half_made import drop_half_made
from agent_farm.git.pool_slots import add_slot, move_slot, put_on_new_branch, update_slot
from agent_farm.git.sparse import widen
from agent_farm.git.worktree_removal import drop_registration
from agent_farm.git.worktrees import list_worktrees, require_free
from agent_farm.paths import FarmPaths

FILL_SECONDS = 120.0


def take_slot(
    farm: Farm, record: BuilderRecord, commit: str, carried: Collection[str], builder_lock: int
) -> bool:
    """Turn a slot into the builder's worktree at `commit`; False if there is none to take.

    A slot at another commit is updated: if the base has moved a little, little is written.
    """
    if not record.new_branch:
        return False
    path = record.worktree_path
    with file_lock(_lock(farm), inherit=True) as pool_lock:
        every = _ready(farm).items()
        ready = {slot: held for slot, held in every if held.can_become(record.sparse, carried)}
        slot = next((slot for slot, held in ready.items() if held.commit == commit), next(iter(ready), None))
        if slot is None:
            return False
        _marker(slot).unlink()
        try:
            # Done before it belongs to a builder, so that a kill leaves no builder with files of another
            # base.
            if ready[slot].commit != commit:
                update_slot(farm.repository, slot, commit, fds=(pool_lock,), step=farm.step)
            if ready[slot].sparse != record.sparse:
                widen(linked_tree(farm.repository, slot), record.sparse, fds=(pool_lock,))
            if not _still_fits(farm, slot, ready[slot]):
                return False
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


def follow_base(root: Path) -> None:
    """For the server, which has no farm open: a user's pull or commit moves the base, too."""
    if (FarmPaths(root).worktrees / POOL).is_dir():
        farm = open_farm(root)
        base = _base(farm)
        if any(held.commit != base for held in _ready(farm).values()):
            refill_later(farm)


def fill(farm: Farm) -> int:
    """Make or update as many slots as should be ready, and remove others; returns how many are ready."""
    try:
        with file_lock(farm.paths.locks / "pool-fill.lock", wait=0):
            _fill(farm, _wanted(farm))
    except LockTaken:
        pass  # another process is filling the pool
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
    """Slots without a marker, unless a process is making them at this moment."""
    if not pool_directory(farm).is_dir() or is_locked(farm.paths.locks / "pool-fill.lock"):
        return []
    ready = _ready(farm)
    return sorted(path for path in pool_directory(farm).glob("[!.]*") if path.is_dir() and path not in ready)


def remove_half_made_slots(farm: Farm) -> None:
    with file_lock(farm.paths.locks / "pool-fill.lock", wait=0):
        _remove_half_made(farm)


class SlotContents(Struct, frozen=True):
    """What a slot contains: the files of a commit (if sparse, in some directories), and carried output."""

    commit: str
    sparse: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    def can_become(self, sparse: Sequence[str], carried: Collection[str]) -> bool:
        """Whether turning it into that only requires adding something."""
        narrow = set(self.sparse) <= set(sparse) if self.sparse else not sparse
        return narrow and set(self.carried) <= set(carried)


def _wanted(farm: Farm) -> SlotContents:
    """What a spawn without options starts from."""
    commit, names = _base(farm), farm.settings.items("spawn.sparse")
    sparse = require_directories(farm, commit, names, "spawn.sparse")
    return SlotContents(commit, sparse, declared_output(farm, farm.settings.agreed("worktree.carry")))


def _base(farm: Farm) -> str:
    base = farm.settings.text("spawn.base")
    return farm.repository.resolve_commit(base) if base else farm.repository.head(farm.root).commit


def _fill(farm: Farm, wanted: SlotContents) -> None:
    settle_home(farm.repository)
    make_directory(pool_directory(farm))
    _remove_half_made(farm)
    for slot, held in _ready(farm).items():
        useful = held.sparse == wanted.sparse and set(held.carried) <= set(wanted.carried)
        if not useful and _claim(farm, slot):
            _remove_slot(farm, slot)
        elif held != wanted and _claim(farm, slot):
            update_slot(farm.repository, slot, wanted.commit, step=farm.step)
            _store(farm, slot, wanted)
    count, number = _within_room(farm, pool_of(farm), wanted).size, 0
    for slot in list(_ready(farm))[count:]:
        if _claim(farm, slot):
            _remove_slot(farm, slot)
    while len(_ready(farm)) < count:
        farm.step("Checking out", len(_ready(farm)), count)
        slot = pool_directory(farm) / str(number)
        number += 1
        if not slot.exists():
            with measured(farm):
                lock = farm.paths.worktree_lock
                where = (farm.repository, slot, wanted.commit)
                add_slot(*where, lock_path=lock, sparse=wanted.sparse, step=farm.step)
            _store(farm, slot, wanted)
    if not count:
        with suppress(OSError):  # something else is in it
            pool_directory(farm).rmdir()


def planned(farm: Farm) -> Pool:
    """How many should be ready, and why; unless `pool.size` is set, no more than fit on the disk."""
    pool = pool_of(farm)
    return pool if not pool.size else _within_room(farm, pool, _wanted(farm))


def _within_room(farm: Farm, pool: Pool, wanted: SlotContents) -> Pool:
    if not pool.size or farm.settings.number("pool.size"):
        return pool
    each = tree_bytes(farm.repository, wanted.commit, wanted.sparse) + output_bytes(farm, wanted.carried)
    room = affordable(farm, each)
    if room >= pool.size:
        return pool
    why = f"{pool.reason}; at {each / 1e6:,.0f} MB each, no more fit into {MOST_TOLD}"
    return Pool(room, why)


def count_ready(farm: Farm) -> int:
    return len(_ready(farm))


def _claim(farm: Farm, slot: Path) -> bool:
    with file_lock(_lock(farm)):
        held = _marker(slot).exists()
        _marker(slot).unlink(missing_ok=True)
        return held


def _remove_half_made(farm: Farm) -> None:
    """A slot without its marker was being made by a process that died; nobody has worked in it.

    Spawns take slots under the pool's lock, and only one process fills, so nobody else uses such a slot.
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
    """Slots that git knows; half-made ones are dropped first, because git fails on them."""
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


def _ready(farm: Farm) -> dict[Path, SlotContents]:
    markers = sorted(pool_directory(farm).glob("*.ready")) if pool_directory(farm).is_dir() else []
    found = {}
    for marker in markers:
        slot = marker.with_suffix("")
        held = load_if_whole(marker, SlotContents) if slot.is_dir() else None
        if held is not None:
            found[slot] = held
    return found


def _lock(farm: Farm) -> Path:
    return farm.paths.locks / "pool.lock"


def _store(farm: Farm, slot: Path, held: SlotContents) -> None:
    """Carry output into it, as far as that fits, and mark it as ready."""
    carried = held.carried and bring_output(farm, linked_tree(farm.repository, slot), held.carried)
    store(_marker(slot), replace(held, carried=carried))


def _still_fits(farm: Farm, slot: Path, held: SlotContents) -> bool:
    """At another commit its output may be tracked, or not ignored."""
    return not held.carried or (
        held.carried == fitting_output(linked_tree(farm.repository, slot), held.carried)
    )


def _marker(slot: Path) -> Path:
    return slot.with_name(f"{slot.name}.ready")

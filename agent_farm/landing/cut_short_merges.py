"""Finds interrupted merges: git was killed, or the disk was full, while it wrote into a checkout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent_farm.disk import file_lock, is_locked
from agent_farm.errors import AgentFarmError
from agent_farm.farm.checks.finding import Finding, partly_written
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import Checkout
from agent_farm.git.settling import half_written, read_move, settle_interrupted_move
from agent_farm.git.worktrees import every_checkout
from agent_farm.landing.place import landing_lock, landing_lock_path
from agent_farm.landing.train.landing_journal import Store
from agent_farm.landing.trial import remove_trial, trial_lock_path
from agent_farm.launch import as_command


def check_interrupted_merges(farm: Farm) -> Iterator[Finding]:
    for checkout in every_checkout(farm.repository):
        move = read_move(checkout)
        if move is not None and not is_locked(landing_lock_path(farm, checkout)):
            yield Finding(
                "problem",
                f"a merge of {move.what} into {move.branch} was interrupted in {checkout.path}",
                heal=partial(_settle, farm, checkout),
            )


def check_interrupted_syncs(farm: Farm) -> Iterator[Finding]:
    """Only reported, and left to `af sync`: the note is where a builder can write."""
    for record in farm.registry.read().values():
        with suppress(AgentFarmError):
            tree = farm.tree_if_there(record) if record.is_made else None
            if tree and read_move(tree) and not is_locked(landing_lock_path(farm, tree)):
                what = f"moving {record.id} onto its base was interrupted"
                yield Finding("problem", what, remedy=as_command("af", "sync", record.id))


def check_cut_short_landing(farm: Farm) -> Iterator[Finding]:
    queue = Store(farm.paths.landing).read()
    if queue is None or queue.closed or is_locked(farm.paths.landing_lock):
        return
    waits = [*queue.line.held_ids(), *queue.line.ids()]
    yield Finding(
        "problem",
        f"a landing on {queue.into} was cut short; in its queue: {', '.join(waits) or 'none'}",
        remedy="af land --continue",
    )


def check_left_of_merges(farm: Farm) -> Iterator[Finding]:
    """Left by merges killed before their last step: nothing that a person sees has changed."""
    for path in (path for checkout in every_checkout(farm.repository) for path in half_written(checkout)):
        yield partly_written(path)
    for path in sorted((farm.paths.state / "trials").glob("*")):
        if not is_locked(trial_lock_path(farm, path)):
            yield Finding(
                "note",
                f"{path} is from an interrupted merge or check",
                heal=partial(_remove, farm, path),
            )


def _remove(farm: Farm, path: Path) -> str:
    with file_lock(trial_lock_path(farm, path), wait=0):
        remove_trial(farm, path)
    return f"{path.name} is removed"


def _settle(farm: Farm, checkout: Checkout) -> str:
    with landing_lock(farm, checkout):
        settled = settle_interrupted_move(checkout)
    return settled.told if settled else "it has been settled in the meantime"

"""Merges that were cut short: a kill or a full disk stopped git while it wrote into a checkout."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from agent_farm.disk import is_locked
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.farm.holding import landing_lock, landing_lock_path
from agent_farm.git.checkouts import Checkout, every_checkout
from agent_farm.git.settling import read_move, settle_interrupted


def check_interrupted_merges(farm: Farm) -> Iterator[Finding]:
    for checkout in every_checkout(farm.repository):
        move = read_move(checkout)
        if move is not None and not is_locked(landing_lock_path(farm, checkout)):
            yield Finding(
                "problem",
                f"a merge of {move.what} into {move.branch} was cut short in {checkout.path}",
                heal=partial(_settle, farm, checkout),
            )


def _settle(farm: Farm, checkout: Checkout) -> str:
    with landing_lock(farm, checkout):
        settled = settle_interrupted(checkout)
    return settled.told if settled else "it has been settled meanwhile"

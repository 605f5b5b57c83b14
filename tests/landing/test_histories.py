"""Random histories of the landing queue: nothing unproven lands, nothing is lost, nothing lands twice."""

from __future__ import annotations

import random
from itertools import count

import pytest

from tests.landing.histories import Memory, require_sound, run

IDS = "abcdefgh"


def memory_of(seed: int, **more: float) -> tuple[Memory, list[str]]:
    """A few branches, some bad, some only together, some of which do not merge."""
    chance = random.Random(seed)
    ids = list(IDS[: chance.randint(1, len(IDS))])
    bad = {frozenset({id}) for id in ids if chance.random() < 0.3}
    pairs = [frozenset(chance.sample(ids, 2)) for _ in range(2)] if len(ids) > 1 else []
    if chance.random() < 0.1:
        bad.add(frozenset({"p0"}))  # a person's commit breaks the target
    clashing = set(pairs[1:]) if chance.random() < 0.7 else set()
    memory = Memory(chance, bad | set(pairs[:1]), clashing, **more)  # type: ignore[arg-type]
    now = chance.randint(1, len(ids))
    memory.later = ids[now:]
    for id in ids[:now]:
        memory.add(id)
    return memory, ids


def histories(seeds: range) -> None:
    for seed in seeds:
        memory, ids = memory_of(seed, flaky=0.05, kills=0.05, persons=0.02)
        ended = run(memory, width=1 + seed % 2)
        require_sound(memory, ids, ended=ended)


def test_histories() -> None:
    histories(range(200))


@pytest.mark.slow
def test_ten_thousand_histories() -> None:
    histories(range(10_000))


def outcome(memory: Memory) -> tuple[list[str], list[str], int]:
    queue = memory.require()
    back = sorted(one.id for one in queue.returned)
    return sorted(memory.commits[memory.target]), back, queue.checks


@pytest.mark.parametrize("seed", range(12))
def test_a_kill_at_every_step_changes_nothing_of_the_end(seed: int) -> None:
    undisturbed, ids = memory_of(seed)
    for id in undisturbed.later:
        undisturbed.add(id)
    undisturbed.later = []
    start = undisturbed.queue
    assert run(undisturbed)
    for step in count(1):
        again, _ = memory_of(seed)
        again.later, again.queue, again.kill_at = [], start, step
        assert run(again)
        require_sound(again, ids, ended=True)
        assert outcome(again) == outcome(undisturbed)
        if step > undisturbed.steps:
            break

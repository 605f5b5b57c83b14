"""Orders work for landing so that as few as possible meet a conflict, given which pairs conflict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

_STEPS = 20_000  # of the exact search; if they are not enough, the order is good but may not be the best


class LandingOrder(Struct, frozen=True):
    """`ids` in the order to land; those in `rework` will conflict when their turn comes."""

    ids: tuple[str, ...]
    rework: tuple[str, ...]


def landing_order(
    ids: Sequence[str], pairs: Collection[tuple[str, str]], blocked: Collection[str] = ()
) -> LandingOrder:
    """`pairs` conflict with each other, `blocked` conflict with the branch they should land on.

    First comes a largest set without conflicts, in the given order; then the others, those that conflict with
    the fewest landed before them first.
    """
    beside: dict[str, set[str]] = {id: set() for id in ids}
    for one, other in pairs:
        beside[one].add(other)
        beside[other].add(one)
    free = _Search(beside).largest(frozenset(id for id in ids if id not in blocked))
    first = [id for id in ids if id in free]
    rest = sorted((id for id in ids if id not in free), key=lambda id: (len(beside[id]), ids.index(id)))
    return LandingOrder((*first, *rest), tuple(rest))


class _Search:
    """Finds a largest set without conflicts by trying the one with most conflicts both in and out."""

    def __init__(self, beside: Mapping[str, set[str]]) -> None:
        self.beside = beside
        self.steps = 0

    def largest(self, among: frozenset[str]) -> frozenset[str]:
        self.steps += 1
        apart = {id: self.beside[id] & among for id in among}
        lone = frozenset(id for id, others in apart.items() if len(others) <= 1)
        if lone:  # including one with a single rival never makes it worse
            chosen: set[str] = set()
            for id in sorted(lone):
                if not apart[id] & chosen:
                    chosen.add(id)
            taken = chosen.union(*(apart[id] for id in chosen))
            return frozenset(chosen) | self.largest(among - taken)
        if not among:
            return among
        if self.steps > _STEPS:
            least = min(sorted(among), key=lambda id: len(apart[id]))
            return self.largest(among - apart[least] - {least}) | {least}
        most = max(sorted(among), key=lambda id: len(apart[id]))
        with_it = self.largest(among - apart[most] - {most}) | {most}
        without = self.largest(among - {most})
        return with_it if len(with_it) >= len(without) else without

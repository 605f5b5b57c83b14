"""Rows as lines of a terminal: columns as wide as their content; the last one gets the remaining room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from agent_farm.cli.cells import cells, cut, fit

GAP = "  "
_LAST_WANTED = 32  # as long as the last column has less room than this, others give way

K = TypeVar("K")


def table(rows: Sequence[Sequence[str]], width: int, give_way: Iterable[int] = ()) -> list[str]:
    """The lines; `give_way` are columns to leave out, one by one, while the last one has too little room."""
    if not rows:
        return []
    widths = {place: max(map(cells, column)) for place, column in enumerate(zip(*rows, strict=True))}
    last = max(widths)
    make_room(widths, last, width, give_way)
    widths[last] = max(0, room_for(widths, last, width))
    return [cut(GAP.join(fit(row[place], widths[place]) for place in widths).rstrip(), width) for row in rows]


def make_room(widths: dict[K, int], last: K, width: int, give_way: Iterable[K]) -> None:
    for name in give_way:
        if room_for(widths, last, width) >= min(widths[last], _LAST_WANTED):
            return
        widths.pop(name, None)


def lacking(widths: dict[K, int], last: K, width: int) -> int:
    """How many cells the last column wants but does not have."""
    return max(0, min(widths[last], _LAST_WANTED) - room_for(widths, last, width))


def room_for(widths: dict[K, int], last: K, width: int) -> int:
    """The room that the other columns leave."""
    return width - sum(size + len(GAP) for name, size in widths.items() if name != last)

"""`af costs`."""

from __future__ import annotations

from agent_farm.cli.cells import cells, counted, cut, money, pad
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, printable
from agent_farm.operations.costs import Costs, OfBuilder, Sum

_LONGEST = 50


def _show(found: Costs) -> None:
    if not found.builders:
        narrate("No runtime has told what it used in that time.")
        return
    rows = [("id", "runtime", "starts", "in", "out", "cached", "cost", "task"), *map(_row, found.builders)]
    widths = [max(cells(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    for row in rows:
        answer("  ".join((*(pad(cell, width) for cell, width in zip(row, widths, strict=False)), row[-1])))
    narrate(f"\n{counted(len(found.builders), 'builder')}: {_told(found.total)}")
    if found.per_landed:
        narrate(f"{counted(found.landed, 'change')} landed, each for {_told(found.per_landed)}")


def _row(one: OfBuilder) -> tuple[str, ...]:
    state = "landed: " if one.landed else ""
    return (
        one.id,
        one.runtime,
        str(len(one.runs)),
        str(one.input_tokens),
        str(one.output_tokens),
        str(one.cached_tokens),
        "" if one.cost is None else money(one.cost),
        cut(printable(f"{state}{' '.join(one.title.split())}"), _LONGEST),
    )


def _told(sum: Sum) -> str:
    cost = "" if sum.cost is None else f", {money(sum.cost)}"
    return f"{sum.input_tokens} tokens in, {sum.output_tokens} out, {sum.cached_tokens} from a cache{cost}"


costs = command_of(Way("costs", _show))

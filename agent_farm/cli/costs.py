"""`af costs`."""

from __future__ import annotations

from agent_farm.cli.cells import counted, money
from agent_farm.cli.columns import table
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, printable, terminal_width
from agent_farm.operations.costs import Costs, OfBuilder, Sum

_HEADER = ("id", "runtime", "starts", "in", "out", "cached", "cost", "task")
_GIVE_WAY = tuple(map(_HEADER.index, ("starts", "cached", "runtime")))


def _show(found: Costs) -> None:
    if not found.builders:
        narrate("No runtime has reported any use in that time.")
        return
    for line in table([_HEADER, *map(_row, found.builders)], terminal_width(), _GIVE_WAY):
        answer(line)
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
        printable(f"{state}{' '.join(one.title.split())}"),
    )


def _told(sum: Sum) -> str:
    cost = "" if sum.cost is None else f", {money(sum.cost)}"
    return f"{sum.input_tokens} tokens in, {sum.output_tokens} out, {sum.cached_tokens} from a cache{cost}"


costs = command_of(Way("costs", _show))

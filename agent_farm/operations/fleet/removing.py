"""`fleet_remove`: take a machine out of the fleet, once everything on it has come home."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, structs

from agent_farm.errors import WorkWouldBeLost
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import edit_book, read_book
from agent_farm.fleet.calling import release_slot
from agent_farm.git.other_machine import drop_branch
from agent_farm.operations.declare import acts
from agent_farm.operations.fleet.checkpoint import bring_home
from agent_farm.operations.fleet.refresh import refresh
from agent_farm.operations.fleet.work_elsewhere import take_what_came
from agent_farm.operations.operation import TERMINAL_ALONE, Answer, Context, Request


class FleetRemove(Request):
    host: Annotated[str, Meta(description="The machine")]
    forget: Annotated[
        bool,
        Meta(
            description="Forget its builders, too, because the machine is gone for good: their fetched work"
            " stays here, as their branches"
        ),
    ] = False


class FleetLeft(Answer):
    """`place` is what stays there; `removed` are builders that can now only be restored there.

    `forgotten` are builders that af no longer knows; `branches` are theirs, and stay.
    """

    host: str
    place: str
    removed: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()


@acts(
    "Take a machine out of the fleet; refused while builders are there",
    tolerant=True,
    doors=TERMINAL_ALONE,  # as fleet_add
    details="Nothing is deleted on the machine.",
)
def fleet_remove(context: Context, request: FleetRemove) -> FleetLeft:
    host, farm = request.host, context.farm
    for id, placed in read_book(farm).on(host).items() if request.forget else ():
        if kept := take_what_came(farm, id, placed):
            context.tell(kept)
    if not request.forget:
        _require_nothing_to_come(farm, host)
    with edit_book(farm) as held:
        book = held[0]
        machine, there = book.machine(host), book.on(host)
        if there and not request.forget:
            raise WorkWouldBeLost(
                f"{len(there)} builder{'s are' if len(there) > 1 else ' is'} on {host}",
                why=f"If {host} is gone for good, --forget takes them off the list.",
                evidence=sorted(there)[:20],
                hint=f"af prune --stop {' '.join(sorted(there)[:5])}",
            )
        removed = tuple(id for id, one in book.removed.items() if one.host == host)
        held[0] = structs.replace(
            book,
            machines={name: one for name, one in book.machines.items() if name != host},
            builders={id: one for id, one in book.builders.items() if one.host != host},
            removed={id: one for id, one in book.removed.items() if one.host != host},
        )
    for id, placed in there.items():
        release_slot(book, id, placed)
    stay = (
        one.branch
        for one in there.values()
        if not (one.new_branch and drop_branch(farm.repository, one.branch, one.base_commit))
    )
    return FleetLeft(host, machine.place, removed, tuple(there), tuple(stay))


def _require_nothing_to_come(farm: Farm, host: str) -> None:
    """Fetch what builders placed elsewhere since left there, where they may have continued for a while."""

    def waited_for() -> list[str]:
        return [one.id for one in read_book(farm).left if one.host == host and one.commit is None]

    if waited_for():
        bring_home(farm, refresh(farm, {host}), host)
    if ids := waited_for():
        raise WorkWouldBeLost(
            f"The work that {ids[0]} had on {host} before it was placed elsewhere has not come home",
            why=f"If {host} is gone for good, --forget leaves it there.",
            hint="af fleet status",
        )

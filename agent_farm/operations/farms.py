"""`farms`: summarise the builders of all farms of this user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.status import NEEDS_YOU
from agent_farm.errors import AgentFarmError, in_one_line
from agent_farm.farm.farm import open_farm
from agent_farm.farm.listing import list_builders
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Nothing
from agent_farm.operations.status import Colleague
from agent_farm.ports import reserved_ports
from agent_farm.server.launching import running_server


class FarmShown(Answer):
    """`port` is its server's, null if none is running. `problem` says why its builders cannot be listed."""

    name: str
    root: str
    is_here: bool
    port: int | None
    needing: Annotated[int, Meta(description="Number of its builders that need you")]
    builders: tuple[Colleague, ...]
    problem: str | None = None


class AllFarms(Answer):
    farms: tuple[FarmShown, ...]


def known_farms(here: Path) -> list[Path]:
    """This farm, and all that have reserved ports for a builder."""
    return sorted({here, *(Path(root) for root in reserved_ports())})


@reads(
    "List the builders of all farms of this user",
    details="Farms are found by the ports reserved for their builders.",
)
def farms(context: Context, request: Nothing) -> AllFarms:
    return AllFarms(tuple(_shown(context.farm.root)))


def _shown(here: Path) -> Iterator[FarmShown]:
    for root in known_farms(here):
        builders: list[Colleague] = []
        port = problem = None
        name = root.name
        try:
            farm = open_farm(root)
            name = farm.paths.name
            builders = [Colleague.of(one) for one in list_builders(farm, with_git=False)]
            address = running_server(root)
            port = address.port if address else None
        except (AgentFarmError, OSError) as error:
            problem = in_one_line(error)
        needing = sum(one.state in NEEDS_YOU for one in builders)
        yield FarmShown(name, str(root), root == here, port, needing, tuple(builders), problem)

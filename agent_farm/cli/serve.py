"""`af serve`."""

from __future__ import annotations

import click

from agent_farm.cli.fields import offer
from agent_farm.cli.options import current_farm
from agent_farm.cli.output import answer, narrate, printable
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.operations.builders import choose
from agent_farm.operations.operation import Context


@click.command(epilog="Call it again with another ID, from anywhere, to give the port to that builder.")
@click.argument("id", metavar="ID", shell_complete=offer("complete_ids"))
@click.option("--port", type=click.IntRange(1024, 65535), help="The fixed port; default: serve.port.")
def serve(id: str, port: int | None) -> None:
    """Pass one fixed port on to builder ID, until Ctrl-C.

    Its server listens on AF_PORT, as every builder's does. One builder at a time has the fixed port, for
    what works with that port alone: a login that returns there, or a cookie.
    """
    from agent_farm.farm.fixed_port import FixedPort

    farm = current_farm(tolerant=True)
    record = choose(Context(farm), id)
    number = port or farm.settings.number("serve.port")
    if not number:
        raise UsageError(
            "No port is configured",
            why="Which port should lead to the builder?",
            hint=f"af serve --port 3000 {id}",
        )
    if not record.ports:
        raise AgentFarmError(f"{record.id} has no ports", why="ports.per_builder was 0 when it was spawned.")
    fixed = FixedPort(farm, number)
    fixed.choose(record.id)
    if not fixed.serve(lambda text: narrate(printable(text))):
        answer(f"http://localhost:{number} goes to {record.id} (port {record.ports[0]}) now")

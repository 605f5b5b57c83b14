"""`af forward`."""

from __future__ import annotations

import signal
import socket
import subprocess
import time

import click

from agent_farm.cli.fields import offer
from agent_farm.cli.options import current_farm
from agent_farm.cli.output import answer, narrate
from agent_farm.descendants import lifeline
from agent_farm.errors import AgentFarmError, Unreachable, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.calling import address_of
from agent_farm.launch import as_command
from agent_farm.operations.fleet.elsewhere import elsewhere_of
from agent_farm.ssh.connection import forward_argv
from agent_farm.ssh.ssh_url import Address

_POLL_SECONDS = 0.1


@click.command()
@click.argument("id", metavar="ID", shell_complete=offer("complete_ids"))
@click.option(
    "--port", type=click.IntRange(1024, 65535), help="Local port for its first port, which is AF_PORT there."
)
def forward(id: str, port: int | None) -> None:
    """Pass ports on to builder ID on another machine, until Ctrl-C.

    They have the same numbers here as there, or others where these are taken.
    """
    farm = current_farm(tolerant=True)
    host, address, there = _ports(farm, id)
    ports = {_free(port if port and at == 0 else one, port): one for at, one in enumerate(there)}
    program = subprocess.Popen(
        forward_argv(address, ports), stdin=subprocess.DEVNULL, preexec_fn=lifeline(signal.SIGTERM)
    )
    try:
        _wait_for(next(iter(ports)), program, host)
        for here, one in ports.items():
            answer(f"http://localhost:{here} goes to {id} on {host} (port {one})")
        program.wait()
    except KeyboardInterrupt:
        narrate("")
        return
    finally:
        program.kill()
        program.wait()
    raise Unreachable(f"{host} broke off", why=f"ssh ended with {program.returncode}.")


def _ports(farm: Farm, id: str) -> tuple[str, Address, tuple[int, ...]]:
    """The builder's machine, its address, and the builder's ports there."""
    found = elsewhere_of(farm, id)
    if found is None:
        farm.require(id)
        raise UsageError(f"{id} is on this machine", hint=as_command("af", "serve", id))
    book, whole, host = found
    row = book.builders[whole].row
    if row is None or not row.record.ports:
        raise AgentFarmError(
            f"No ports of {whole} are known", why=f"{host} has not reported any.", hint=f"af status {whole}"
        )
    return host, address_of(book.machine(host)), tuple(row.record.ports)


def _free(wished: int, required: int | None) -> int:
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", wished))
        except OSError as error:
            if wished == required:
                raise AgentFarmError(f"Port {wished} is not available", why=error.strerror) from error
            one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int, program: subprocess.Popen[bytes], host: str) -> None:
    while program.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(_POLL_SECONDS)
    raise Unreachable(f"{host} cannot be reached", why=f"ssh ended with {program.returncode}.")

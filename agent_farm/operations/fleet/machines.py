"""`fleet_add`, `fleet_status`, `fleet_remove`: the machines on which this farm's builders can work."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs

from agent_farm import __version__
from agent_farm.engine.contract import Room
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Cluster, Machine, Place, edit_book, read_book
from agent_farm.fleet.calling import (
    Call,
    address_of,
    builder_of,
    call_program,
    cluster_of,
    engine_of,
)
from agent_farm.git.asking import side_by_side
from agent_farm.git.checkpoints import left_ref
from agent_farm.git.git_process import run_git_bytes
from agent_farm.git.ignoring import keep_apart
from agent_farm.launch import as_command
from agent_farm.operations.declare import acts, reads
from agent_farm.operations.fleet.installing import Wheels, install, no_af, other_af, probe, read_wheels
from agent_farm.operations.fleet.rows_elsewhere import answer_of
from agent_farm.operations.for_home.answered import Hello, Welcome
from agent_farm.operations.operation import TERMINAL_ALONE, Answer, Context, Nothing, Request
from agent_farm.printable import printable
from agent_farm.ssh.ssh_url import Address, parse_address

_SECONDS = 60.0
_LOOK_SECONDS = 15.0


class FleetAdd(Request):
    address: Annotated[
        str, Meta(description="The machine: ssh://[USER@]HOST[:PORT][/DIRECTORY]; it is called HOST")
    ]
    program: Annotated[
        str | None, Meta(description="Path of af there; default: the one on its PATH, or in ~/.local")
    ] = None
    install: Annotated[
        bool,
        Meta(description="Install this version of af in an environment of its own there if it is missing"),
    ] = False
    wheels: Annotated[
        str | None,
        Meta(
            description="Wheel to send there and install, or a directory of wheels to install from; default:"
            " the package index"
        ),
    ] = None


class MachineShown(Struct, frozen=True):
    """`problem` says why it could not be asked; the other fields are null then."""

    host: str
    address: str
    program: str
    place: Annotated[str, Meta(description="Directory of this farm's builders there")]
    builders: int
    problem: str | None = None
    draining: Annotated[bool, Meta(description="It takes no new builder")] = False
    left: Annotated[
        dict[str, str],
        Meta(description="Builders that were placed elsewhere since; the ref has their work from there"),
    ] = {}
    git: str | None = None
    tmux: str | None = None
    python: str | None = None


class ClusterShown(Struct, frozen=True):
    """`lost` are builders whose slot was on a machine that is gone."""

    address: str
    tls: bool
    machines: tuple[Room, ...] = ()
    lost: tuple[str, ...] = ()
    problem: str | None = None


class Fleet(Answer):
    machines: tuple[MachineShown, ...]
    cluster: ClusterShown | None = None


@acts(
    "Add a machine for builders of this farm",
    outside=True,
    doors=TERMINAL_ALONE,  # it runs programs on other machines in the user's name
    details="Checks over ssh that git, tmux, Python and the same af are there, and creates an empty"
    " repository for this farm in DIRECTORY (default: ~/.local/state/agent-farm/fleet). Without"
    " --install it installs nothing; with it, the commands are shown first.",
)
def fleet_add(context: Context, request: FleetAdd) -> Fleet:
    farm, address = context.farm, parse_address(request.address)
    host = address.host
    if host in ("local", "fleet"):
        raise UsageError(f"A machine cannot be called {host}", why=f"--on {host} has another meaning.")
    book = read_book(farm)
    if host in book.machines:
        raise UsageError(f"{host} is already in the fleet", hint=f"af fleet remove {host}")
    if (request.wheels or request.install) and request.program:
        raise UsageError("--program and --install exclude each other", hint="af fleet add --help")
    if request.wheels and not request.install:
        raise UsageError("--wheels needs --install", hint="af fleet add --help")
    program = _program(context, request, address)
    keep_apart(farm.repository)
    welcome = greet(farm, book, address, program, _SECONDS)
    machine = Machine(address.text, program, welcome.place, seen_at=time.time())
    with edit_book(farm) as held:
        now = held[0] if farm.paths.fleet.exists() else book
        if now.farm != book.farm:
            hint = as_command("af", "fleet", "add", request.address)
            raise AgentFarmError("Another command has set up the fleet in the meantime", hint=hint)
        held[0] = now.with_machine(host, machine)
    return Fleet((_shown(held[0], host, welcome),))


def _program(context: Context, request: FleetAdd, address: Address) -> str:
    """The path of af there; one from an earlier `--install` is used again."""
    wheels = read_wheels(_below(context, request.wheels)) if request.wheels else Wheels()
    found = probe(address)
    if request.program:
        return _absolute(request.program)
    known = (__version__,) if request.install else (__version__, "")
    if found["af"] and found["version"] in known:
        return _absolute(found["af"])
    if not request.install:
        if found["af"]:
            raise other_af(address, found["version"], request.address)
        raise no_af(address, request.address)
    return _absolute(install(address, wheels, context.tell))


def _below(context: Context, path: str) -> Path:
    return (context.directory or context.farm.root) / path


def _absolute(program: str) -> str:
    try:
        return msgspec.convert(program, Place)
    except msgspec.ValidationError:
        what = f"{printable(program)[:60]!r} is not an absolute path of a program"
        raise UsageError(what, hint="af fleet add --help") from None


def greet(
    farm: Farm, book: Book, address: Address, program: str, seconds: float, cluster: Cluster | None = None
) -> Welcome:
    """Programs and versions there, and the farm's repository, which is created if necessary."""

    def own(*words: str) -> str | None:
        found = run_git_bytes(farm.root, *words, ok=(0, 1)).decode("utf-8", "replace")
        return found.strip() or None

    form = own("rev-parse", "--show-object-format") or "sha1"
    hello = Hello(form, own("config", "user.name"), own("config", "user.email"))
    asked = Call(
        __version__,
        book.farm,
        address.directory,
        "hello",
        {k: v for k, v in structs.asdict(hello).items() if v},
        fences=book.fences(address.host),
    )
    return answer_of(
        Welcome, call_program(address, program, asked, seconds=seconds, cluster=cluster), address.host
    )


@reads("Ask the machines of the fleet for their state")
def fleet_status(context: Context, request: Nothing) -> Fleet:
    farm = context.farm
    book = read_book(farm)
    questions = {host: partial(_look_at, farm, book, one) for host, one in book.machines.items()}
    found = side_by_side(questions) if questions else {}
    shown = tuple(_shown(book, host, answer) for host, answer in found.items())
    return Fleet(shown, _cluster(book, book.cluster) if book.cluster else None)


def _look_at(farm: Farm, book: Book, machine: Machine) -> Welcome:
    address = address_of(machine)
    return greet(farm, book, address, machine.program, _LOOK_SECONDS, cluster_of(book, address.host))


def _cluster(book: Book, cluster: Cluster) -> ClusterShown:
    engine = engine_of(cluster)
    own = (cluster.address, bool(cluster.tls))
    try:
        names = (name for name, host in sorted(engine.places().items()) if host is None)
        lost = tuple(id for name in names if (id := builder_of(book, name)))
        return ClusterShown(*own, engine.capacity(), lost)
    except AgentFarmError as error:
        return ClusterShown(*own, problem=error.sentence)


def _shown(book: Book, host: str, found: Welcome | AgentFarmError) -> MachineShown:
    machine, count = book.machines[host], len(book.on(host))
    own = (host, machine.address, machine.program, machine.place, count)
    left = {one.id: left_ref(one.id, one.term) for one in book.left if one.host == host and one.commit}
    shown = partial(MachineShown, *own, draining=machine.draining, left=left)
    if isinstance(found, AgentFarmError):
        return shown(problem=found.sentence)
    return shown(git=found.git, tmux=found.tmux, python=found.python)

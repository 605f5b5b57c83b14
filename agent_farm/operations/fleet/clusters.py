"""`fleet_up`, `fleet_join`, `fleet_down`: a Ray cluster for the fleet, started here or elsewhere."""

from __future__ import annotations

import re
import socket
from typing import Annotated

from msgspec import Meta, structs

from agent_farm.engine.contract import Room
from agent_farm.engine.held import HeldEngine
from agent_farm.engine.nodes import LOOPBACK, end_node, start_head, start_member, starting
from agent_farm.engine.ray_files import (
    Node,
    make_token,
    read_node,
    read_token,
    require_ray,
    running_node,
    store_token,
    token_file,
)
from agent_farm.errors import NotFound, UsageError
from agent_farm.fleet.book import Cluster, edit_book, read_book
from agent_farm.git.ignoring import keep_apart
from agent_farm.launch import as_command
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import TERMINAL_ALONE, Answer, Context, Nothing, Request

_CLUSTER = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,200}):([0-9]{1,5})")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,200}")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?")
_TAKEN = ("local", "fleet")
_PORT = 6379
Slots = Annotated[int, Meta(ge=0, le=10_000)]


class FleetUp(Request):
    host: Annotated[
        str | None,
        Meta(description="Address of this machine to listen on; default: 127.0.0.1, for this machine only"),
    ] = None
    port: Annotated[int, Meta(ge=1, le=65535, description="Port of the head")] = _PORT
    cluster: Annotated[
        str | None,
        Meta(description="HOST:PORT of an existing cluster to use instead of starting a head here"),
    ] = None
    slots: Annotated[Slots, Meta(description="Number of the fleet's builders that this machine takes")] = 0
    tls: Annotated[
        str | None, Meta(description="Directory with ca.crt, tls.crt and tls.key, for all connections")
    ] = None
    token: Annotated[str | None, Meta(description="Token of the cluster to use")] = None


class FleetJoin(Request):
    cluster: Annotated[str, Meta(description="HOST:PORT of the head")]
    slots: Annotated[Slots, Meta(description="Number of builders that this machine takes")] = 8
    name: Annotated[str | None, Meta(description="Name of this machine; default: its host name")] = None
    host: Annotated[
        str | None, Meta(description="Address of this machine, if the others cannot find it out")
    ] = None
    tls: Annotated[str | None, Meta(description="Directory with ca.crt, tls.crt and tls.key")] = None
    token: Annotated[str | None, Meta(description="Token of the cluster")] = None


class ClusterUp(Answer):
    """`join` is the command that adds HOST to the cluster, if other machines can reach it."""

    cluster: str
    machines: tuple[Room, ...]
    join: str | None = None
    tls: bool = False


class Joined(Answer):
    cluster: str
    name: str
    slots: int


class FleetDown(Answer):
    """`ended`: one of its nodes ran here and was ended."""

    cluster: str
    ended: bool


@acts(
    "Start a Ray cluster for builders of this farm, or use an existing one",
    outside=True,
    doors=TERMINAL_ALONE,  # it opens this machine to others in the user's name
    details="Its head runs here until `af fleet down`. Every connection must present the token, which is"
    " created once in a file of yours; with --cluster it is read from standard input. Without"
    " --host the head only listens on 127.0.0.1. Usage statistics are off.",
)
def fleet_up(context: Context, request: FleetUp) -> ClusterUp:
    require_ray()
    farm = context.farm
    known = read_book(farm).cluster
    node = running_node()
    wanted = request.cluster or (
        f"{request.host or LOOPBACK}:{request.port}" if request.host or node is None else node.cluster
    )
    if known and known.address != wanted:
        raise UsageError(
            f"This farm uses the cluster at {known.address}",
            why="Builders there are reached through it.",
            hint="af fleet down",
        )
    if node is None:
        node = _start(request)
    if node.cluster != wanted:
        raise UsageError(f"A node of the cluster at {node.cluster} runs here", hint="af fleet down")
    rooms = HeldEngine(node.cluster, node.tls).capacity()
    keep_apart(farm.repository)
    with edit_book(farm) as held:
        held[0] = structs.replace(held[0], cluster=Cluster(node.cluster, node.tls))
    return _up(context, node, rooms)


def _start(request: FleetUp) -> Node:
    tls, host, name = request.tls or "", _host(request.host), _name(None)
    cluster = request.cluster and _cluster(request.cluster)
    with starting():
        if cluster is not None:
            _take_token(request.token)
            return start_member(cluster, host, name=name, slots=request.slots, tls=tls)
        make_token()
        return start_head(host or LOOPBACK, request.port, name=name, slots=request.slots, tls=tls)


def _up(context: Context, node: Node, rooms: tuple[Room, ...]) -> ClusterUp:
    if node.cluster.rpartition(":")[0] == LOOPBACK:
        context.tell("It only listens on 127.0.0.1; --host ADDRESS lets other machines reach it.")
        return ClusterUp(node.cluster, rooms, tls=bool(node.tls))
    if not node.tls:
        context.tell(
            "Every connection needs the token, but without --tls the traffic can be read on its way."
        )
    words = as_command("af", "fleet", "join", node.cluster, *(["--tls", "DIRECTORY"] if node.tls else []))
    line = f"ssh HOST {words} < {as_command(token_file())}"
    return ClusterUp(node.cluster, rooms, line, bool(node.tls))


@acts(
    "Let builders of the farms that use a cluster work on this machine",
    outside=True,
    doors=TERMINAL_ALONE,  # it opens this machine to others in the user's name
    tolerant=True,
    details="The token is read from standard input. The machine stays in the cluster until `af fleet"
    " down` is run here; builders continue after that.",
)
def fleet_join(context: Context, request: FleetJoin) -> Joined:
    require_ray()
    name, cluster, host = _name(request.name), _cluster(request.cluster), _host(request.host)
    with starting():
        _take_token(request.token)
        start_member(cluster, host, name=name, slots=request.slots, tls=request.tls or "")
    return Joined(cluster, name, request.slots)


@acts(
    "End the cluster node that runs here, and stop using the cluster",
    tolerant=True,
    doors=TERMINAL_ALONE,  # as fleet_up
    details="When the head ends, its cluster ends. Builders on its machines continue, and can be reached"
    " again after `af fleet up` and `af fleet join`.",
)
def fleet_down(context: Context, request: Nothing) -> FleetDown:
    farm, node = context.farm_if_there, read_node()
    cluster = read_book(farm).cluster if farm else None
    if node is None and cluster is None:
        raise NotFound("This farm uses no cluster", hint="af fleet up")
    own = {(one.address, one.tls) for one in (cluster,) if one} | {
        (one.cluster, one.tls) for one in (node,) if one
    }
    for address, tls in own:
        HeldEngine(address, tls).end()
    end_node()
    if farm and cluster:
        with edit_book(farm) as held:
            held[0] = structs.replace(held[0], cluster=None)
    return FleetDown(min(own)[0], node is not None)


def _take_token(token: str | None) -> None:
    if token:
        store_token(token)
        return
    try:
        read_token()
    except FileNotFoundError as error:
        raise UsageError(
            "The token of the cluster is missing",
            why="It is read from standard input.",
            hint="af fleet join --help",
        ) from error


def _cluster(text: str) -> str:
    found = _CLUSTER.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 65535:
        raise UsageError(f"{text!r:.80} is not HOST:PORT of a cluster")
    return text


def _host(text: str | None) -> str | None:
    if text is not None and not _HOST.fullmatch(text):
        raise UsageError(f"{text!r:.80} is not an address of this machine")
    return text


def _name(text: str | None) -> str:
    name = text or re.sub(r"[^a-z0-9]+", "-", socket.gethostname().split(".")[0].lower()).strip("-")
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise UsageError(f"{name!r:.80} cannot be the name of a machine", hint="af fleet join --name NAME …")
    return name

"""Ray as an engine. Only the holder imports it: it takes 80 MB and ends its process when a node dies."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_list, _internal_kv_put
from ray.util import get_placement_group, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from agent_farm.engine.contract import Room
from agent_farm.engine.node_agent import NodeAgent
from agent_farm.engine.plain import choose
from agent_farm.engine.ray_loopback import stay_on_loopback
from agent_farm.engine.sealing import seal
from agent_farm.errors import NotFound, Overdue, Unreachable, there_are

_NAMESPACE = "agent-farm"
_NODE = "ray.io/node-id"
_DRAINING = "agent-farm-draining/"
_AGENT_SECONDS = 60.0
_PLACE_SECONDS = 20.0
_LOOK_SECONDS = 0.5
_LATE_SECONDS = 10.0
_THREADS = 64
_GONE = ("REMOVED",)


class RayEngine:
    """Implements `Engine` for a process that is a driver of the cluster."""

    def __init__(self, cluster: str) -> None:
        stay_on_loopback()
        ray.init(
            address=cluster, namespace=_NAMESPACE, log_to_driver=False, configure_logging=False,
            include_dashboard=False,
        )  # fmt: skip
        self._make: Any = ray.remote(NodeAgent)

    def capacity(self) -> tuple[Room, ...]:
        taken, draining = list(self._held().values()), self._draining()
        rooms = (
            Room(
                host,
                int(node["Resources"].get("builder", 0)),
                taken.count(node["NodeID"]),
                host in draining,
            )
            for host, node in self._nodes().items()
        )
        return tuple(room for room in rooms if room.slots or room.taken)

    def place(self, name: str, host: str | None, avoided: Collection[str] = ()) -> str:
        """Ray keeps the slot on that node; when the node dies, the slot does not move."""
        full = set(avoided)
        while True:
            nodes = self._nodes()
            if host is not None:
                _require(nodes, host)
            now = self._held().get(name)
            if now is not None and not _node_of(nodes, now):
                self.release(name)
                now = None
            chosen = choose(self.capacity(), host, _node_of(nodes, now) if now else None, full)
            if now:
                return chosen
            group = placement_group(
                [{"builder": 1}],
                name=name,
                lifetime="detached",
                bundle_label_selector=[{_NODE: nodes[chosen]["NodeID"]}],
            )
            if group.wait(timeout_seconds=_PLACE_SECONDS):
                return chosen
            remove_placement_group(group)  # another farm was faster
            full.add(chosen)

    def release(self, name: str) -> None:
        if name in self._held():
            remove_placement_group(get_placement_group(name))

    def drain(self, name: str, host: str) -> None:
        """Ray's own draining of a node cannot be undone, and ends what runs there."""
        _require(self._nodes(), host)
        _internal_kv_put(f"{_DRAINING}{host}/{name}", b"", namespace=_NAMESPACE)

    def undrain(self, name: str, host: str) -> None:
        _internal_kv_del(f"{_DRAINING}{host}/{name}", namespace=_NAMESPACE)

    def _draining(self) -> set[str]:
        keys = _internal_kv_list(_DRAINING, namespace=_NAMESPACE)
        return {key.decode().removeprefix(_DRAINING).partition("/")[0] for key in keys}

    def places(self) -> dict[str, str | None]:
        nodes = self._nodes()
        return {name: _node_of(nodes, node) for name, node in self._held().items()}

    def call(
        self, host: str, data: bytes, *, seconds: float, wanted: Callable[[], bool] = lambda: True
    ) -> Iterator[bytes]:
        """`wanted` says whether somebody still waits for the answer."""
        token = secrets.token_hex(8)
        try:
            agent, key = self._agent(host, min(seconds, _AGENT_SECONDS))
            if not wanted():
                raise Overdue(f"The request to {host} was given up")
        except Unreachable as error:
            error.began = False
            raise
        asked = agent.answer.remote(token, ray.put(seal(key, data)), seconds)
        deadline = time.monotonic() + seconds + min(seconds, _LATE_SECONDS)
        while not ray.wait([asked], timeout=_LOOK_SECONDS)[0]:
            if time.monotonic() > deadline or not wanted():
                agent.end.remote(token)
                raise Overdue(f"{host} has not answered within {seconds:g} s")
        try:
            lines, problem, is_late = ray.get(asked)
        except RayError as error:
            raise _unreachable(host, error) from error
        yield from lines
        if problem is not None:
            kind = Overdue if is_late else Unreachable
            raise kind(f"{host} {'is late' if is_late else 'broke off'}", why=problem)

    def _agent(self, host: str, seconds: float) -> tuple[Any, bytes]:
        """The machine's agent, found by name or created, and its key. Before it answers, no call begins."""
        for is_last in (False, True):
            node = self._nodes().get(host)
            if node is None:
                raise Unreachable(f"{host} is not in the cluster", hint="af fleet status")
            try:
                agent = self._make.options(
                    name=f"agent-{node['NodeID']}",
                    lifetime="detached",
                    get_if_exists=True,
                    num_cpus=0,
                    max_concurrency=_THREADS,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
                ).remote()
                return agent, ray.get(agent.key.remote(), timeout=seconds)
            except GetTimeoutError as error:
                raise Overdue(f"{host} has not answered within {seconds:g} s") from error
            except (RayError, ValueError) as error:
                if is_last:
                    raise _unreachable(host, error) from error
        raise AssertionError

    def _nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes that are alive, by their given name or the name of their machine."""
        found: dict[str, dict[str, Any]] = {}
        for node in sorted(ray.nodes(), key=lambda node: str(node["NodeID"])):
            if node["Alive"]:
                name = node.get("Labels", {}).get("af-name") or node["NodeManagerHostname"]
                name = str(name).split(".")[0]
                found[name if name not in found else f"{name}-{node['NodeID'][:6]}"] = node
        return found

    def _held(self) -> dict[str, str]:
        """The node of each slot; "" if Ray has not placed it yet."""
        return {
            one["name"]: next(iter(one["bundles_to_node_id"].values()), "")
            for one in placement_group_table().values()
            if one["state"] not in _GONE and one["name"]
        }


def _require(nodes: dict[str, dict[str, Any]], host: str) -> None:
    if host not in nodes:
        raise NotFound(f"No machine {host}", why=there_are(host, sorted(nodes)))


def _node_of(nodes: dict[str, dict[str, Any]], id: str) -> str | None:
    return next((host for host, node in nodes.items() if node["NodeID"] == id), None)


def _unreachable(host: str, error: Exception) -> Unreachable:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return Unreachable(f"{host} cannot be reached", why=lines[0][:300] if lines else type(error).__name__)

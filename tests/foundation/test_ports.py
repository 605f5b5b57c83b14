"""Port blocks: distinct across farms, stable for an id, never one that somebody listens on."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.ports import FIRST_PORT, LAST_PORT, forget_farms, release_ports, reserve_ports, reserved_ports

ONE, TWO = Path("/farms/one"), Path("/farms/two")


def test_a_block_is_neighbouring_and_within_bounds() -> None:
    ports = reserve_ports(ONE, "a", 10)
    assert list(ports) == list(range(ports[0], ports[0] + 10))
    assert ports[0] >= FIRST_PORT
    assert ports[-1] < LAST_PORT


def test_the_same_builder_gets_the_same_block() -> None:
    first = reserve_ports(ONE, "a", 10)
    assert reserve_ports(ONE, "a", 10) == first
    release_ports(ONE, ["a"])
    reserve_ports(ONE, "b", 10)
    assert reserve_ports(ONE, "a", 10) == first


def test_builders_of_two_farms_share_none() -> None:
    blocks = [reserve_ports(root, f"task-{number}", 10) for root in (ONE, TWO) for number in range(30)]
    assert len({port for block in blocks for port in block}) == 600


def test_a_port_that_is_listened_on_is_passed_over() -> None:
    wanted = reserve_ports(ONE, "a", 4)
    release_ports(ONE, ["a"])
    with socket.create_server(("127.0.0.1", wanted[2])):
        assert set(reserve_ports(ONE, "a", 4)).isdisjoint(wanted)


def test_a_port_that_is_listened_on_everywhere_is_passed_over() -> None:
    """A server on all interfaces takes the local one too."""
    wanted = reserve_ports(ONE, "a", 4)
    release_ports(ONE, ["a"])
    with socket.create_server(("0.0.0.0", wanted[1])):
        assert set(reserve_ports(ONE, "a", 4)).isdisjoint(wanted)


def test_a_port_that_is_listened_on_by_ipv6_alone_is_passed_over() -> None:
    wanted = reserve_ports(ONE, "a", 4)
    release_ports(ONE, ["a"])
    try:
        server = socket.create_server(("::1", wanted[0]), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with server:
        assert set(reserve_ports(ONE, "a", 4)).isdisjoint(wanted)


def test_another_size_is_another_block() -> None:
    reserve_ports(ONE, "a", 10)
    assert len(reserve_ports(ONE, "a", 3)) == 3
    assert len(reserved_ports()[str(ONE)]["a"]) == 3


def test_none_are_reserved_when_none_are_wanted() -> None:
    assert reserve_ports(ONE, "a", 0) == ()
    assert reserved_ports() == {}


def test_what_is_released_is_gone_and_the_rest_stays() -> None:
    for id in "abc":
        reserve_ports(ONE, id, 5)
    release_ports(ONE, ["a", "c", "unknown"])
    assert set(reserved_ports()[str(ONE)]) == {"b"}
    release_ports(ONE, ["b"])
    assert reserved_ports() == {}
    release_ports(ONE, ["b"])


def test_a_farm_is_forgotten_whole() -> None:
    for root in (ONE, TWO):
        reserve_ports(root, "a", 5)
    forget_farms([str(ONE)])
    assert set(reserved_ports()) == {str(TWO)}
    forget_farms(["/farms/unknown"])


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(AgentFarmError, match=r"ports\.per_builder is 20000"):
        reserve_ports(ONE, "a", 20000)


def test_when_all_are_taken_it_says_so(tmp_path: Path) -> None:
    file = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json"
    file.parent.mkdir(parents=True)
    everything = list(range(FIRST_PORT, LAST_PORT))
    file.write_text(json.dumps({"version": 1, "farms": {str(tmp_path): {"greedy": everything}}}))
    with pytest.raises(AgentFarmError, match="No 10 free consecutive ports"):
        reserve_ports(ONE, "a", 10)
    assert reserved_ports() == {str(tmp_path): {"greedy": everything}}


@pytest.mark.parametrize(
    "content", ["{", '{"version": 2}', "[]", '{"version": 1}', '{"version": 1, "farms": []}',
                '{"version": 1, "farms": {"/x": 7}}', '{"version": 1, "farms": {"/x": {"a": ["b"]}}}'],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_by_name_and_kept(content: str) -> None:
    file = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    with pytest.raises(DamagedFile, match=r"ports\.json"):
        reserve_ports(ONE, "a", 5)
    with pytest.raises(DamagedFile, match=r"ports\.json"):
        release_ports(ONE, ["a"])
    with pytest.raises(DamagedFile, match=r"ports\.json"):
        reserved_ports()
    assert file.read_text() == content


def _reserve_many(worker: int) -> None:
    for number in range(5):
        reserve_ports(ONE, f"{worker}-{number}", 10)


def test_many_processes_share_none() -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_reserve_many, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    ports = [port for block in reserved_ports()[str(ONE)].values() for port in block]
    assert len(ports) == len(set(ports)) == 400


@given(st.integers(1, 40), st.text(min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_any_id_and_size(count: int, id: str) -> None:
    ports = reserve_ports(ONE, id, count)
    assert len(ports) == count
    assert set(range(FIRST_PORT, LAST_PORT)).issuperset(ports)


def test_the_file_is_the_users_alone_and_has_a_version() -> None:
    reserve_ports(ONE, "a", 2)
    file = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["version"] == 1


def test_what_farms_hold_that_are_not_there_is_taken_last() -> None:
    file = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json"
    file.parent.mkdir(parents=True)
    held = {str(TWO): {"gone": list(range(FIRST_PORT, LAST_PORT - 500))}}
    file.write_text(json.dumps({"version": 1, "farms": held}))
    assert min(reserve_ports(ONE, "a", 10)) >= LAST_PORT - 500
    held[str(TWO)]["gone"] = list(range(FIRST_PORT, LAST_PORT))
    file.write_text(json.dumps({"version": 1, "farms": held}))
    assert len(reserve_ports(ONE, "b", 10)) == 10

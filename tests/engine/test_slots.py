"""Slots of builders on a cluster: each has one until it is removed, whatever the cluster forgets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from agent_farm.engine.child import answer_here
from agent_farm.engine.plain import Plain, PlainMachine
from agent_farm.errors import AgentFarmError, NoRoom, Unreachable
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.fleet.book import Book, Cluster, Machine, Placed, edit_book, read_book
from agent_farm.fleet.calling import slot_name
from agent_farm.operations.doctor import doctor, doctor_fix
from agent_farm.operations.fleet.draining import FleetDrain, fleet_drain
from agent_farm.operations.fleet.held_slots import hold_again, hold_slot, names_lock
from agent_farm.operations.fleet.server_keeping import keep_fleet
from agent_farm.operations.operation import Context, Nothing
from agent_farm.operations.prune import Prune, prune
from agent_farm.operations.restore import Restore, restore
from agent_farm.operations.spawn import spawn
from agent_farm.operations.spawn_request import Spawn
from tests.conftest import end_processes, end_tmux_servers
from tests.engine.engines import Cluster as Machines
from tests.gitrepo import git


@pytest.fixture
def plain(tmp_path: Path, repo: Path, short: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plain]:
    """A cluster that is no Ray, of one machine with one slot; `held` is what it knows."""
    runtime = short / "plain"
    runtime.mkdir()
    node = Machines(tmp_path / "machines", runtime, runtime).machine("n1")
    made = Plain({"n1": PlainMachine(lambda *asked: iter(list(answer_here(*asked, node.environment))), 1)})
    monkeypatch.setattr("agent_farm.engine.held.HeldEngine", lambda address, tls: made)
    with edit_book(open_farm(repo)) as held:
        held[0] = Book(held[0].farm, cluster=Cluster("127.0.0.1:1"))
    yield made
    end_tmux_servers(node.sockets)
    end_processes(node.home)
    for place in (node.sockets, runtime):
        shutil.rmtree(place)


@pytest.fixture
def one_there(repo: Path, plain: Plain) -> Farm:
    """A farm that has builder `a` on n1, of which the cluster knows nothing."""
    farm, commit = open_farm(repo), git(repo, "rev-parse", "HEAD").strip()
    with edit_book(farm) as held:
        machine = Machine("ray://n1", "/usr/bin/af", "/nowhere")
        placed = Placed("n1", "builder/a", "main", commit, "a", "2026-01-01", is_known=True)
        held[0] = Book(held[0].farm, {"n1": machine}, {"a": placed}, cluster=held[0].cluster)
    return farm


def test_a_second_builder_fits_only_after_the_first_is_removed(repo: Path, plain: Plain) -> None:
    context = Context(open_farm(repo), environ=os.environ, naming_agrees=True)
    order = Spawn(task="Fix the login", shell=False, runtime="demo", on="fleet", yes=True)

    def spawned() -> str:
        made = spawn.answer_to(context, order).builder
        assert made is not None
        return made.id

    first = spawned()
    with pytest.raises(NoRoom):
        spawned()
    plain.held.clear()  # as when the head begins anew
    with pytest.raises(NoRoom):
        spawned()
    removed = prune.answer_to(
        context, Prune(ids=(first,), stop=True, discard_commits=True, discard_changes=True)
    ).removed
    assert [one.id for one in removed] == [first]
    assert plain.held == {}
    second = spawned()
    book = read_book(open_farm(repo))
    assert plain.held == {slot_name(book, second, book.builders[second].term): "n1"}


def test_who_looks_after_the_fleet_holds_slots_again(one_there: Farm, plain: Plain) -> None:
    keep_fleet(one_there.root)
    assert plain.held == {slot_name(read_book(one_there), "a", 1): "n1"}


def test_a_slot_of_no_builder_is_let_go_of(one_there: Farm, plain: Plain) -> None:
    book = read_book(one_there)
    with edit_book(one_there) as held:
        held[0] = Book(book.farm, book.machines, cluster=book.cluster)
    plain.held.update({slot_name(book, "cut-short", 7): "n1"})
    assert hold_slot(one_there, "b", 2, "fleet") == "n1"


def test_doctor_finds_slots_of_no_builder(one_there: Farm, plain: Plain) -> None:
    """Of one that was never recorded, and of one whose removal was recorded; others' stay."""
    book, context = read_book(one_there), Context(one_there)
    with edit_book(one_there) as held:
        removed = {"gone": structs.replace(book.builders["a"], term=2)}
        held[0] = Book(book.farm, book.machines, dict(book.builders), removed=removed, cluster=book.cluster)
    kept = {slot_name(book, "a", 1), f"{book.farm}.session/1", "another-farm/b@3"}
    left = {slot_name(book, "cut-short", 7), slot_name(book, "gone", 2)}
    plain.held.update(dict.fromkeys(kept | left, "n1"))

    def found() -> list[str]:
        return [one.what for one in doctor.answer_to(context, Nothing()).findings if "slot" in one.what]

    with names_lock(one_there):
        assert found() == [], "a spawn may be about to record it"
    assert [what.split()[6] for what in found()] == ["cut-short,", "gone,"]
    assert plain.held.keys() == kept | left
    doctor_fix.answer_to(context, Nothing())
    assert plain.held.keys() == kept
    assert found() == []


def test_where_a_cluster_has_no_room_a_machine_over_ssh_takes_it(
    one_there: Farm, plain: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = read_book(one_there)
    machines = {**book.machines, "big": Machine("ssh://big", "/usr/bin/af", "/nowhere")}
    with edit_book(one_there) as held:
        held[0] = Book(book.farm, machines, dict(book.builders), cluster=book.cluster)
    assert hold_slot(one_there, "b", 2, "fleet") == "big"
    for avoided in ((), ("big",)):
        with pytest.raises(NoRoom, match="No room on"):
            hold_slot(one_there, "b", 2, "n1" if not avoided else "fleet", avoided)
    with edit_book(one_there) as held:
        held[0] = Book(book.farm, machines, cluster=book.cluster)
    assert hold_slot(one_there, "b", 2, "fleet", ("n1",)) == "big"
    assert hold_slot(one_there, "b", 2, "fleet") == "n1"

    def fail(self: Plain) -> None:
        raise Unreachable("The connection has ended")

    monkeypatch.setattr(Plain, "places", fail)
    assert hold_slot(one_there, "c", 3, "fleet") == "big"


def test_one_that_moves_keeps_its_slot_until_it_is_there(one_there: Farm, plain: Plain) -> None:
    book = read_book(one_there)
    machines = {**book.machines, "n2": Machine("ray://n2", "/usr/bin/af", "/nowhere")}
    plain.machines["n2"] = PlainMachine(slots=1)  # type: ignore[index]
    before, after = (slot_name(book, "a", term) for term in (1, 2))
    plain.held.update({before: "n1"})
    for is_known, slots in ((False, {before: "n1", after: "n2"}), (True, {after: "n2"})):
        placed = structs.replace(book.builders["a"], host="n2", term=2, is_known=is_known)
        hold_again(Book(book.farm, machines, {"a": placed}, cluster=book.cluster))
        assert plain.held == slots


def test_a_slot_that_nobody_heard_of_is_let_go_of(
    one_there: Farm, plain: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to `place` was lost after the cluster had held one."""

    def lost(self: Plain, name: str, host: str | None, avoided: Collection[str]) -> str:
        self.held[name] = "n1"
        raise Unreachable("The connection has ended")

    monkeypatch.setattr(Plain, "place", lost)
    plain.held[slot_name(read_book(one_there), "a", 1)] = "n1"
    with pytest.raises(Unreachable):
        hold_slot(one_there, "b", 2, "fleet")
    assert list(plain.held) == [slot_name(read_book(one_there), "a", 1)]


def test_a_restore_that_is_refused_holds_no_slot(one_there: Farm, plain: Plain) -> None:
    book = read_book(one_there)
    with edit_book(one_there) as held:
        held[0] = Book(book.farm, book.machines, removed=dict(book.builders), cluster=book.cluster)
    with pytest.raises(AgentFarmError, match="There is no farm"):
        restore.answer_to(Context(one_there), Restore(id="a"))
    assert plain.held == {}


def test_a_machine_of_a_cluster_that_is_not_used_is_no_other_machine(one_there: Farm) -> None:
    book = read_book(one_there)
    with edit_book(one_there) as held:
        machines = {**book.machines, "big": Machine("ssh://big", "/usr/bin/af", "/nowhere")}
        held[0] = Book(book.farm, machines, dict(book.builders))
    with pytest.raises(Unreachable, match="n1 is in a cluster, but this farm uses none"):
        hold_slot(one_there, "b", 2, "n1")


def test_a_machine_of_a_cluster_drains_for_all_its_farms(repo: Path, plain: Plain) -> None:
    context = Context(open_farm(repo), environ=os.environ, naming_agrees=True)
    order = Spawn(task="Fix the login", shell=False, runtime="demo", on="fleet", yes=True)
    plain.machines["n1"] = replace(plain.machines["n1"], slots=2)  # type: ignore[index]
    made = spawn.answer_to(context, order).builder
    assert made is not None
    book = read_book(open_farm(repo))
    found = fleet_drain.answer_to(context, FleetDrain(host="n1"))
    assert ([one.id for one in found.stay], found.failed) == ([made.id], ())
    assert plain.drained == {("n1", book.farm)}
    assert git(repo, "rev-parse", f"refs/agent-farm/fleet/{made.id}@checkpoint")
    with pytest.raises(NoRoom, match="No room on the fleet"):
        spawn.answer_to(context, order)
    (failure,) = fleet_drain.answer_to(context, FleetDrain(host="n1", move=True, interrupt=True)).failed
    assert failure.what == "No other machine takes builders"
    plain.drained.clear()  # as when the head begins anew
    hold_again(read_book(open_farm(repo)))
    assert plain.drained == {("n1", book.farm)}
    fleet_drain.answer_to(context, FleetDrain(host="n1", undo=True))
    assert plain.drained == set()
    second = spawn.answer_to(context, order).builder
    assert second is not None
    for one in (made, second):
        prune.answer_to(context, Prune(ids=(one.id,), stop=True, discard_commits=True, discard_changes=True))

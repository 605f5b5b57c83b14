"""What a machine says is judged by the book it was asked with; what happened meanwhile ends no command."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from agent_farm.errors import NotFound
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.fleet.book import Book, Placed, read_book
from agent_farm.git.checkpoints import kept_ref
from agent_farm.git.divergence import commit_at
from agent_farm.git.other_machine import TooMuch, coming_work_ref
from agent_farm.operations.fleet import (
    costs_elsewhere,
    elsewhere,
    recover_elsewhere,
    refresh,
    restart_lost,
    sync_elsewhere,
    work_elsewhere,
)
from agent_farm.operations.fleet.ask_machines import ask_each
from agent_farm.operations.operation import Context
from agent_farm.operations.recover import Recover
from agent_farm.operations.stop import Stop, stop
from agent_farm.operations.sync import Sync, sync
from tests.fleet.test_what_is_kept import here, placed, store_book
from tests.gitrepo import commit_files, git

__all__ = ["here", "placed"]  # fixtures


def test_who_is_placed_while_a_machine_is_asked_is_not_gone(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer was made before."""
    moved = replace(placed, host="other", term=2)
    store_book(here, builders={"stays": placed, "comes back": moved})

    def look(*given: object) -> refresh._Told:
        again = replace(placed, term=3)
        store_book(here, builders={"stays": placed, "new": placed, "comes back": again})
        return refresh._Told({}, {})

    monkeypatch.setattr(refresh, "_look", look)
    found = refresh.refresh(here, {"big"}).builders
    assert {id: one.gone for id, one in found.items()} == {"stays": True, "new": False, "comes back": False}


Act = Callable[[Farm, Book], Any]
ACTS: dict[str, Act] = {
    "ask": lambda farm, book: list(ask_each(stop, Context(farm), book, Stop(ids=("x",)), ["x"])),
    "fetch": lambda farm, book: refresh.fetch_if_reachable(farm, ["x"], print),
    "view": lambda farm, book: elsewhere.with_view(Context(farm), read_book(farm), ["x"]),
    "recover": lambda farm, book: list(
        recover_elsewhere.recover_elsewhere(Context(farm), book, Recover(ids=("x",)), ["x"])
    ),
    "sync": lambda farm, book: list(sync_elsewhere.sync(sync, Context(farm), Sync(ids=("x",)), ["x"])),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_who_is_pruned_meanwhile_is_named(
    act: Act, here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store_book(here, builders={"x": placed})

    def pruned(farm: Farm, *given: object, **named: object) -> Book:
        return store_book(farm, builders={})

    for room in (refresh, recover_elsewhere, sync_elsewhere):
        monkeypatch.setattr(room, "refresh", pruned)
    if act in (ACTS["ask"], ACTS["view"]):
        before = pruned(here)
    with pytest.raises(NotFound, match="There is no builder x"):
        act(here, before)


def test_work_that_is_refused_is_not_kept(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here.root / "agent-farm.toml").write_text("[fleet]\nfetch_megabytes = 1\n")
    here = open_farm(here.root)
    git(here.root, "checkout", "-q", "-b", "work")
    large = commit_files(here.root, {"large.txt": os.urandom(1_000_000).hex()})
    book = store_book(here, builders={"x": placed})

    def fetch(farm: Farm, book: Book, host: str, refs: dict[str, str]) -> None:
        for ours in refs.values():
            git(farm.root, "update-ref", ours, large)

    monkeypatch.setattr(work_elsewhere, "fetch", fetch)
    with pytest.raises(TooMuch):
        work_elsewhere.fetch_work(here, book, "x")
    assert commit_at(here.repository, coming_work_ref("x")) is None


def test_lost_ones_stay_where_they_are_once_their_machine_answers(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round places many, and a machine may be back before the turn of its builders comes."""
    monkeypatch.setattr(restart_lost, "place", lambda *given, **named: pytest.fail("it was moved"))
    store_book(here, builders={"x": placed})
    context = Context(here)
    restart_lost._place_lost(context, restart_lost.Placings(context), "x")
    assert read_book(here).builders["x"] == placed


def test_a_journal_that_cannot_be_read_spoils_no_other(here: Farm) -> None:
    """A machine may send a file where the parts of one belong."""
    parts = {"a": "run/usage.jsonl/0", "b": "run/usage.jsonl"}
    for id, path in parts.items():
        commit_files(here.root, {path: f"{id}\n"})
        git(here.root, "update-ref", kept_ref(id), "HEAD")
        git(here.root, "rm", "-q", path)
    found = costs_elsewhere._journals(here, [kept_ref(id) for id in parts])
    assert found == {kept_ref("a"): b"a\n"}

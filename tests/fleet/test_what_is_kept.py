"""Nothing takes the place of what is newer, and nothing goes with a builder that is not its own."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.fleet.book import Book, LastCheckpoint, Left, Machine, Placed, edit_book, read_book
from agent_farm.git.checkpoints import keep_newer, kept_ref
from agent_farm.git.divergence import commit_at
from agent_farm.git.other_machine import TooMuch
from agent_farm.operations.expire import Expire, expire
from agent_farm.operations.fleet import checkpoint, recover_elsewhere, restart_lost, server_keeping
from agent_farm.operations.fleet.checkpoint import _from_machine, _look_at
from agent_farm.operations.fleet.prune_elsewhere import take_off
from agent_farm.operations.fleet.recover_elsewhere import _moved
from agent_farm.operations.fleet.refresh import _missed
from agent_farm.operations.fleet.restart_lost import recover_lost
from agent_farm.operations.for_home.copied_builders import Copies, Copy, Withdrawn
from agent_farm.operations.operation import Context
from agent_farm.server import serving
from agent_farm.server.address import server_files
from agent_farm.server.callers import Tokens
from agent_farm.server.idle import _has_builders_elsewhere
from agent_farm.server.serving import RunningServer
from tests.gitrepo import commit_files, git

MACHINES = {host: Machine(f"ssh://{host}", "/bin/af", "/srv/farm") for host in ("big", "other", "third")}


def store_book(farm: Farm, **fields: Any) -> Book:
    with edit_book(farm) as held:
        held[0] = replace(held[0], **{"machines": MACHINES, **fields})
    return read_book(farm)


@pytest.fixture
def placed(repo: Path) -> Placed:
    commit = git(repo, "rev-parse", "HEAD")
    return Placed("big", "builder/x", "main", commit, "Fix it", "2026-01-01T00:00:00", is_known=True)


@pytest.fixture
def here(repo: Path) -> Farm:
    return open_farm(repo)


def store_checkpoint(repo: Path, ref: str, parent: str, text: str, id: str = "x") -> str:
    """One that has a file at work/left.txt."""
    script = f"commit {ref}\ncommitter x <x@x> 0 +0000\ndata 0\nfrom {parent}\ndeleteall\n"
    about = msgspec.json.encode(
        {"id": id, "state": "idle", "cut_short": False, "branch": None, "tip": parent,
         "conversation": None, "left_out": []}
    ).decode()  # fmt: skip
    for path, content in (("work/left.txt", text), ("about.json", about)):
        script += f"M 100644 inline {path}\ndata {len(content)}\n{content}\n"
    git(repo, "fast-import", "--quiet", "--force", input=script)
    return git(repo, "rev-parse", ref)


def test_commits_that_no_checkpoint_has_stay(repo: Path) -> None:
    old = git(repo, "rev-parse", "HEAD")
    store_checkpoint(repo, kept_ref("x"), old, "1")
    here = open_farm(repo).repository
    git(repo, "update-ref", "refs/agent-farm/fleet/x", old)
    git(repo, "branch", "builder/x", old)
    assert keep_newer(here, "x", "builder/x") == []
    fetched = commit_files(repo, {"a": "fetched\n"})
    git(repo, "update-ref", "refs/agent-farm/fleet/x", fetched)
    git(repo, "branch", "-f", "builder/x", fetched)
    (ref,) = keep_newer(here, "x", "builder/x")
    assert git(repo, "rev-parse", ref) == fetched
    own = commit_files(repo, {"a": "by hand\n"})
    git(repo, "branch", "-f", "builder/x", own)
    assert [git(repo, "rev-parse", one) for one in keep_newer(here, "x", "builder/x")] == [fetched, own]


def fail(*given: object, **named: object) -> None:
    raise AgentFarmError("No space left on device")


def test_a_machine_that_it_has_left_is_not_asked_for_it(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was placed elsewhere while another one held the lock, or while it was fetched."""
    old = store_book(here, builders={"x": placed})
    store_book(here, builders={"x": replace(placed, host="other", term=2)})
    monkeypatch.setattr(checkpoint, "call", fail)
    assert _from_machine(here, old, "big", ["x"]) == {}
    ref = kept_ref("x")
    last = store_checkpoint(here.root, ref, placed.base_commit, "what the new one has")
    store_checkpoint(here.root, f"{ref}-coming", placed.base_commit, "what the old one had")
    assert isinstance(_look_at(here, "big", {"x": ref})["x"], AgentFarmError)
    assert git(here.root, "rev-parse", ref) == last
    store_checkpoint(here.root, f"{ref}-coming", placed.base_commit, "later")
    assert _look_at(here, "other", {"x": ref}) == {"x": git(here.root, "rev-parse", ref)}
    assert git(here.root, "show", f"{ref}:work/left.txt") == "later"


def test_what_a_machine_refuses_takes_no_fence_of_others(here: Farm, placed: Placed) -> None:
    own = Left("x", "third", 1, placed.base_commit)
    store_book(here, builders={"x": placed}, left=(own,), terms=1)

    def refused() -> None:
        with _moved(here, "x", placed, "other"):
            store_book(here, left=(*read_book(here).left, Left("y", "big", 3)))
            fail()

    with pytest.raises(AgentFarmError, match="No space"):
        refused()
    assert read_book(here).fences("big") == {"y": 3}
    assert read_book(here).builders["x"] == placed
    assert own in read_book(here).left


def test_lost_builders_are_spread(here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.root / "agent-farm.toml").write_text('[fleet]\nrestart = "auto"\n')
    here = open_farm(here.root)
    lost = replace(placed, checkpoint=LastCheckpoint(placed.base_commit, time.time()))
    dead = replace(MACHINES["big"], problem="no route", silent_since=1.0, misses=9)
    store_book(here, machines={**MACHINES, "big": dead}, builders=dict.fromkeys("abcd", lost))

    def place(context: Context, id: str, placed: Placed, on: str, **named: object) -> None:
        with _moved(context.farm, id, placed, on):
            pass

    monkeypatch.setattr(restart_lost, "place", place)
    monkeypatch.setattr(restart_lost, "require_lost", lambda farm, book, id: book.builders[id])
    recover_lost(Context(here, environ=os.environ), read_book(here))
    assert {host: len(read_book(here).on(host)) for host in MACHINES} == {"big": 0, "other": 2, "third": 2}


def test_a_machine_that_hangs_holds_up_no_other(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here.root / "agent-farm.toml").write_text('[fleet]\nrestart = "auto"\n')
    here = open_farm(here.root)
    dead = replace(MACHINES["big"], problem="no route", silent_since=1.0, misses=9)
    lost = replace(placed, checkpoint=LastCheckpoint(placed.base_commit, time.time()))
    store_book(here, machines={**MACHINES, "big": dead}, builders=dict.fromkeys("ab", lost))
    is_placed = Event()

    def place(context: Context, id: str, placed: Placed, on: str, **named: object) -> None:
        if id == "a":
            assert is_placed.wait(60), "b waits for a"
        is_placed.set()

    monkeypatch.setattr(restart_lost, "place", place)
    monkeypatch.setattr(restart_lost, "require_lost", lambda farm, book, id: book.builders[id])
    recover_lost(Context(here, environ=os.environ), read_book(here))
    assert is_placed.is_set()


def test_who_places_holds_up_no_checkpoint(here: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    store_book(here)
    monkeypatch.setattr(serving, "FLEET_SECONDS", 0.0)
    looks, over = list[Path](), Event()

    def keep(root: Path) -> list[str]:
        looks.append(root)
        if len(looks) > 2:
            over.set()
        return []

    def hang(root: Path, environ: object) -> list[str]:
        return [] if over.wait(60) else looks.clear() or []

    monkeypatch.setattr(server_keeping, "keep_fleet", keep)
    monkeypatch.setattr(server_keeping, "place_lost", hang)

    async def run() -> None:
        server = RunningServer(here.root, server_files(here.root), (), Tokens(here.paths.runs, ""), {})
        tasks = [asyncio.create_task(server._keep_fleet(places=places)) for places in (True, False)]
        await asyncio.to_thread(over.wait, 60)
        for task in tasks:
            task.cancel()

    asyncio.run(run())
    assert len(looks) > 2


@pytest.mark.parametrize("is_there", [True, False])
def test_nobody_returns_before_what_was_left_has_come(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    left = Left("x", "other", 1)
    store_book(here, builders={"x": placed}, left=(left,), terms=2)
    monkeypatch.setattr(recover_elsewhere, "refresh", lambda farm, hosts: read_book(farm))
    monkeypatch.setattr(recover_elsewhere, "bring_home", lambda farm, book, only: {})
    monkeypatch.setattr(recover_elsewhere, "call", lambda *given: {"there": is_there})
    if not is_there:
        with _moved(here, "x", placed, "other"):
            assert read_book(here).builders["x"].host == "other"
        return
    with pytest.raises(AgentFarmError, match="before has not come home"), _moved(here, "x", placed, "other"):
        pytest.fail("it was placed")
    assert read_book(here).builders["x"] == placed
    assert read_book(here).left == (left,)


def test_what_is_refused_is_fetched_less_and_less_often(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fetch for nothing lies here until git collects it: a machine could fill the disk."""
    store_book(here, builders={"x": placed})
    fetches = list[object]()

    def fetch(*given: object, most_bytes: int) -> None:
        fetches.append(given)
        raise TooMuch("big sends more than fleet.fetch_megabytes")

    def look(at: float, commit: str, *, backs_off: bool = True) -> dict[str, str | AgentFarmError]:
        made = msgspec.to_builtins(Copies((Copy("x", commit),)))
        monkeypatch.setattr(checkpoint, "call", lambda *given, **named: made)
        monkeypatch.setattr(time, "time", lambda: at)
        return _from_machine(here, read_book(here), "big", ["x"], backs_off)

    monkeypatch.setattr(checkpoint, "fetch_packs", fetch)
    begun = 1_800_000_000.0
    for count in range(144):
        look(begun + 300 * count, f"{count:040x}")
    before = len(fetches)
    assert 5 < before < 13
    look(begun + 144 * 300, "f" * 40, backs_off=False)
    assert len(fetches) == before + 1, "who asks by hand is not put off"
    coming = f"{kept_ref('x')}-coming"
    store_checkpoint(here.root, coming, placed.base_commit, "smaller")
    commit = git(here.root, "rev-parse", coming)
    monkeypatch.setattr(checkpoint, "fetch_packs", lambda *given, **named: None)
    assert look(begun + 3 * 86_400, commit) == {"x": commit}
    assert read_book(here).refused == {}


def test_what_builders_left_expires(here: Farm, placed: Placed) -> None:
    commit, now = placed.base_commit, int(time.time())
    ends = [
        "@1",
        "@2",
        "@3",
        f"@{now - 90_000}",
        f"@{now - 90_000}-branch",
        f"@{now - 10}",
        "@checkpoint",
        "",
    ]
    for end in ends:
        git(here.root, "update-ref", f"refs/agent-farm/fleet/x{end}", commit)
    old, young = Left("x", "big", 1, commit, now - 90_000.0), Left("x", "other", 2, commit, now - 10.0)
    awaited = Left("x", "third", 3)
    store_book(here, builders={"x": placed}, left=(old, young, awaited))
    found = expire.answer_to(Context(here), Expire(age="1d")).expired
    assert [(one.id, one.epoch) for one in found] == [("x", now - 90_000)] * 3
    refs = git(here.root, "for-each-ref", "--format=%(refname)", "refs/agent-farm/fleet").splitlines()
    left = {f"refs/agent-farm/fleet/x{end}" for end in ("@2", "@3", f"@{now - 10}", "@checkpoint", "")}
    assert set(refs) == left
    assert read_book(here).left == (young, awaited)


def test_what_goes_off_the_list_leaves_what_came_home(here: Farm, placed: Placed) -> None:
    tip = commit_files(here.root, {"a": "work\n"})
    git(here.root, "branch", "builder/x", placed.base_commit)
    commit = store_checkpoint(here.root, kept_ref("x"), tip, "not committed")
    book = store_book(
        here, builders={"x": replace(placed, gone=True, checkpoint=LastCheckpoint(commit, 1.0))}
    )
    said = list[str]()
    take_off(Context(here, tell=said.append), "x", Withdrawn(there=False))
    assert git(here.root, "rev-parse", "builder/x") == tip
    assert commit_at(here.repository, kept_ref("x")) is None
    ref = next(word for word in " ".join(said).split() if word.startswith("refs/agent-farm/fleet/x@"))
    assert git(here.root, "show", f"{ref}:work/left.txt") == "not committed"
    assert book.builders


def test_a_pause_is_no_silence() -> None:
    first = _missed(MACHINES["big"], 1000.0)
    assert (first.silent_since, first.misses) == (1000.0, 1)
    assert (_missed(first, 1020.0).silent_since, _missed(first, 1020.0).misses) == (1000.0, 2)
    asleep, set_back = _missed(first, 30_000.0), _missed(first, 10.0)
    assert (asleep.silent_since, asleep.misses) == (30_000.0, 1)
    assert (set_back.silent_since, set_back.misses) == (10.0, 1)
    seen = replace(MACHINES["big"], seen_at=1000.0)
    steady, seldom = _missed(seen, 1020.0), _missed(seen, 1100.0)
    assert (steady.silent_since, steady.misses) == (1000.0, 1), "since it answered, which was just now"
    assert (seldom.silent_since, seldom.misses) == (1100.0, 1), "nobody looked in between"


def test_a_lock_that_a_killed_git_left_stops_none_of_the_others(here: Farm, placed: Placed) -> None:
    store_book(here, builders={"x": placed, "y": replace(placed, branch="builder/y")})
    refs = {id: kept_ref(id) for id in ("x", "y")}
    for id, ref in refs.items():
        store_checkpoint(here.root, f"{ref}-coming", placed.base_commit, "what it has", id)
    lock = here.root / ".git" / f"{refs['x']}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    came = _look_at(here, "big", refs)
    assert isinstance(came["x"], AgentFarmError)
    assert came["y"] == git(here.root, "rev-parse", refs["y"])
    assert commit_at(here.repository, refs["x"]) is None


def test_what_keeps_the_server_awake(here: Farm, placed: Placed) -> None:
    store_book(here, builders={"x": placed})
    assert _has_builders_elsewhere(here)
    store_book(here, builders={"x": replace(placed, gone=True)})
    assert not _has_builders_elsewhere(here), "its machine has none"
    store_book(here, machines={"big": replace(MACHINES["big"], address="ray://big")}, builders={"x": placed})
    assert _has_builders_elsewhere(here), "work comes home from a cluster, too"


def test_who_looked_before_it_was_placed_does_not_place_it_again(
    here: Farm, placed: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round of the server takes long, in which a person may be faster."""
    store_book(here, builders={"x": replace(placed, host="other", term=2)})
    monkeypatch.setattr(recover_elsewhere, "_place_there", lambda *given: pytest.fail("it was placed twice"))
    with pytest.raises(AgentFarmError, match="x has been placed elsewhere in the meantime"):
        recover_elsewhere.place(Context(here), "x", placed, "third", say=None, yes=False)

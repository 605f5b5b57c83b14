"""Commits that travel in calls: to a machine and back, in pieces, with bounds on what is believed."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from agent_farm.errors import AgentFarmError, NotFound, TimedOut, Unreachable, UsageError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.fleet.book import Book, Cluster, edit_book
from agent_farm.git.git_process import git_deadline
from agent_farm.git.packs import take_pack
from agent_farm.operations.fleet import pack_calls
from agent_farm.operations.fleet.pack_calls import fetch_packs, send_packs
from agent_farm.operations.for_home import pieces
from agent_farm.operations.for_home.pieces import carry
from agent_farm.operations.operation import document
from tests.gitrepo import commit_files, git, make_repo

PIECE = 64 * 1024
BOOK = Book("farm")
Call = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def _has_a_fleet(repo: Path) -> None:
    with edit_book(open_farm(repo)) as held:
        held[0] = Book("farm", cluster=Cluster("127.0.0.1:1"))


@pytest.fixture
def there(tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine's repository; what it is asked and answers goes through JSON, as ever."""
    place = make_repo(tmp_path / "there")

    def call(book: Book, host: str, verb: str, request: Mapping[str, Any], *, seconds: float) -> Any:
        return json.loads(json.dumps(document(carry(place, verb, dict(request)))))

    monkeypatch.setattr(pack_calls, "call", call)
    monkeypatch.setattr(pack_calls, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(pieces, "PIECE_BYTES", PIECE)
    return place


def large(root: Path, size: int) -> str:
    """A commit with so many bytes that no compression makes less of."""
    with open(root / "large.bin", "wb") as file:
        for _ in range(0, size, PIECE):
            file.write(os.urandom(PIECE))
    git(root, "add", "large.bin")
    git(root, "commit", "-qm", "large")
    return git(root, "rev-parse", "HEAD")


OURS = "refs/agent-farm/fleet/a"


def fetched(farm: Farm, most_bytes: int = 1 << 30, theirs: str = "refs/heads/builder/a") -> str:
    fetch_packs(farm, BOOK, "n1", {theirs: OURS}, most_bytes=most_bytes)
    return git(farm.root, "rev-parse", OURS)


def test_commits_go_there_and_come_back(repo: Path, there: Path) -> None:
    farm, commit = open_farm(repo), large(repo, 3 * PIECE)
    send_packs(farm, BOOK, "n1", {"refs/agent-farm/home/a": commit})
    assert git(there, "rev-parse", "refs/agent-farm/home/a") == commit
    git(there, "checkout", "-q", "-b", "builder/a", commit)
    made = large(there, 2 * PIECE)
    assert fetched(farm) == made
    assert fetched(farm) == made, "nothing is missing"
    assert git(repo, "fsck", "--connectivity-only", "--strict") == ""
    assert [*(there / ".git/agent-farm-packs").iterdir()] == []


def test_a_pack_is_never_held_whole(repo: Path, there: Path) -> None:
    farm, commit = open_farm(repo), large(repo, 128 * PIECE)
    tracemalloc.start()
    try:
        send_packs(farm, BOOK, "n1", {"refs/agent-farm/home/a": commit})
        git(there, "branch", "builder/a", commit)
        large(there, 128 * PIECE)
        git(there, "branch", "-f", "builder/a", "HEAD")
        fetched(farm)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 * PIECE


def test_a_fetch_brings_no_more_than_it_may(repo: Path, there: Path) -> None:
    farm = open_farm(repo)
    git(there, "checkout", "-q", "-b", "builder/a")
    made = large(there, 3 * PIECE)
    with pytest.raises(AgentFarmError, match=r"n1 sends more than fleet\.fetch_megabytes"):
        fetched(farm, most_bytes=2 * PIECE)
    assert git(repo, "cat-file", "-t", made, check=False) == ""
    assert [*(there / ".git/agent-farm-packs").iterdir()] == [], "nor is it kept there for a day"


def test_of_a_checkpoint_only_what_is_new_travels(
    repo: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent is what is checked out, and no checkpoint."""
    farm, ref = open_farm(repo), "refs/agent-farm/checkpoint/a"
    commit = git(repo, "rev-parse", "HEAD")
    send_packs(farm, BOOK, "n1", {"refs/agent-farm/home/a": commit})
    sizes = list[int]()

    def take(root: Path, pack: BinaryIO, *, most_bytes: int | None = None) -> None:
        sizes.append(pack.seek(0, os.SEEK_END))
        take_pack(root, pack, most_bytes=most_bytes)

    monkeypatch.setattr(pack_calls, "take_pack", take)
    noise = os.urandom(PIECE).hex()
    for text in ("1", "2"):
        script = f"commit {ref}\ncommitter x <x@x> 0 +0000\ndata 0\nfrom {commit}\ndeleteall\n"
        for path, content in (("work/noise", noise), ("run/text", text)):
            script += f"M 100644 inline {path}\ndata {len(content)}\n{content}\n"
        git(there, "fast-import", "--quiet", "--force", input=script)
        assert fetched(farm, theirs=ref) == git(there, "rev-parse", ref)
    assert sizes[0] > PIECE > 50 * sizes[1]


def test_where_a_ref_may_be(repo: Path, there: Path) -> None:
    farm = open_farm(repo)
    for theirs in ("refs/tags/x", "refs/heads/../../config", "--all", "refs/heads/a\n"):
        with pytest.raises(UsageError, match="cannot be transferred this way"):
            fetched(farm, theirs=theirs)
    with pytest.raises(NotFound, match="There is no refs/heads/builder/a"):
        fetched(farm)


@pytest.mark.parametrize("answer", [{"commits": 5}, {"commits": ["--all"]}, {"commits": {}}, {}])
def test_a_lie_is_told_of_in_a_sentence(
    repo: Path, answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    farm = open_farm(repo)
    monkeypatch.setattr(pack_calls, "call", lambda *words, seconds: answer)
    with pytest.raises(Unreachable, match="n1 "):
        fetched(farm)
    if answer.get("commits"):
        commit = git(repo, "rev-parse", "HEAD")
        with pytest.raises(Unreachable, match="n1 sent an invalid answer"):
            send_packs(farm, BOOK, "n1", {"refs/agent-farm/home/a": commit})


def test_who_is_in_a_hurry_waits_for_no_commits(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def call(*words: object, seconds: float) -> Any:
        asked.append(seconds)
        return {"commits": []}

    monkeypatch.setattr(pack_calls, "call", call)
    refs = {"refs/agent-farm/home/a": git(repo, "rev-parse", "HEAD")}
    with git_deadline(5):
        send_packs(open_farm(repo), BOOK, "n1", refs)
    assert asked
    assert max(asked) <= 5
    with pytest.raises(TimedOut), git_deadline(-1):
        send_packs(open_farm(repo), BOOK, "n1", refs)


def test_what_nobody_asked_for_in_a_day_is_dropped(there: Path) -> None:
    left = pieces._file(there, "0" * 16)
    left.write_bytes(b"a part")
    os.utime(left, (1, 1))
    commit_files(there, {"a": "1"})
    git(there, "branch", "builder/a")
    assert (
        document(
            carry(there, "pack_give", {"refs": ["refs/heads/builder/a"], "known": [], "most_bytes": 10**6})
        )["size"]
        > 0
    )
    assert not left.exists()

"""A machine that lies in each field of its answers: the farm goes on, and believes no more than it can."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_farm.cli.main import run
from agent_farm.farm.farm import open_farm
from agent_farm.fleet import calling
from agent_farm.fleet.book import read_book
from tests.conftest import Af
from tests.fleet.machines import Node
from tests.fleet.test_fleet import ok, spawned
from tests.gitrepo import git

pytestmark = pytest.mark.slow

# Done, an expected failure, a usage error, a refusal, not delivered: anything but a bug.
EXPECTED = (0, 1, 2, 4, 5)
Path_ = tuple[str | int, ...]
LIES: tuple[Any, ...] = (None, 10**400, "\x1b]0;x\x07../../x", [["x"]], {"id": "x"})
WAYS = {
    "status": ("status", "--fresh"),
    "place": ("spawn", "--on", "big", "--runtime", "demo", "--shell"),
    "checkpoint": ("fleet", "checkpoint"),
    "capture": ("capture", "ID"),
    "stop": ("stop", "ID"),
    "withdraw": ("prune", "ID"),
    "prune": ("prune", "--dry-run", "--stop", "--discard-changes", "ID"),
}


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Each field of each object, those that hold others, too."""
    pairs: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for name, below in pairs:
        yield (*path, name)
        yield from leaves(below, (*path, name))


def changed(document: dict[str, Any], path: Path_, lie: Any) -> dict[str, Any]:
    made = copy.deepcopy(document)
    place: Any = made
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = lie
    return made


def about(said: dict[str, Any], id: str) -> dict[str, Any]:
    """As of a builder of that id, where it tells of the one that was made first."""
    made = said.get("builder")
    former = made.get("id") if isinstance(made, dict) else None
    if not isinstance(former, str):
        return said
    found: dict[str, Any] = json.loads(json.dumps(said).replace(former, id))
    return found


@pytest.mark.parametrize("verb", WAYS)
def test_a_lie_in_each_field(
    verb: str,
    af: Af,
    big: Node,
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    id = spawned(af, "--shell")
    (big.farms[0] / ".builders" / id / "left.txt").write_text("not committed\n")  # so that it stays
    monkeypatch.chdir(repo)
    asked, heard = calling.call_program, list[dict[str, Any]]()
    lie: tuple[Path_, Any] | None = None

    def answer(address: Any, program: str, call: calling.Call, **more: Any) -> dict[str, Any]:
        if call.verb != verb or not heard:
            said = asked(address, program, call, **more)
            if call.verb == verb:
                heard.append(said)
            return said
        said = heard[0] if lie is None else changed(heard[0], *lie)
        return about(said, str(call.request["id"])) if verb == "place" else said

    monkeypatch.setattr(calling, "call_program", answer)
    words = [id if word == "ID" else word for word in WAYS[verb]]
    assert run(words) in EXPECTED
    assert heard, "it is asked for that"
    before = set(os.listdir(repo)), git(repo, "rev-parse", "main")
    for path in leaves(heard[0]):
        for one in LIES:
            lie = path, one
            capsys.readouterr()
            code = run(words)
            said = capsys.readouterr()
            assert code in EXPECTED, f"{path} {one!r:.40}: {said.err}"
            assert "\x1b" not in said.out + said.err, f"{path}: {said}"
            book = read_book(open_farm(repo))
            assert id in {*book.builders, *book.removed}, f"{path} {one!r:.40}: {said.err}"
    assert (set(os.listdir(repo)), git(repo, "rev-parse", "main")) == before
    monkeypatch.undo()
    assert id in ok(af, "status", "--fresh") + ok(af, "restore", "--list")

"""Many checkpoints are read by the same few gits, each judged by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.git import git_process
from agent_farm.git.checkpoint_reading import Checkpoint, NoCheckpoint, read_checkpoints, read_file
from tests.gitrepo import git

ABOUT = "M 100644 inline about.json\ndata 2\n{}\n"


def store(repo: Path, ref: str, *parts: str) -> str:
    head = git(repo, "rev-parse", "main")
    script = f"commit {ref}\ncommitter x <x@x> 0 +0000\ndata 0\nfrom {head}\ndeleteall\n"
    script += "".join(parts)
    git(repo, "fast-import", "--quiet", "--force", input=script)
    return git(repo, "rev-parse", ref)


def part(path: str, text: str) -> str:
    return f"M 100644 inline {path}\ndata {len(text)}\n{text}\n"


def test_any_number_takes_as_many_gits_as_one(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refs = [f"refs/c/{number}" for number in range(12)]
    for ref in refs:
        store(repo, ref, ABOUT, part("work/a", ref), part("run/events.jsonl/000000", "1"), part("run/b", "2"))
    here, calls, ask = open_farm(repo).repository, list[object](), git_process.ask_git
    monkeypatch.setattr(
        git_process, "ask_git", lambda *given, **named: calls.append(1) or ask(*given, **named)
    )
    one = read_checkpoints(here, refs[:1], most_bytes=10**6)
    alone, calls[:] = len(calls), []
    found = read_checkpoints(here, refs, most_bytes=10**6)
    assert len(calls) == alone < 12
    assert found[refs[0]] == one[refs[0]]
    for ref, checkpoint in found.items():
        assert isinstance(checkpoint, Checkpoint)
        assert git(repo, "show", f"{checkpoint.work}:a") == ref
        assert (checkpoint.commit, checkpoint.about) == (git(repo, "rev-parse", ref), b"{}")
        assert read_file(here, checkpoint, "run/events.jsonl") == b"1"


def test_one_that_is_none_spoils_no_other(repo: Path) -> None:
    work = part("work/a", "1")
    good = store(repo, "refs/c/good", ABOUT, work)
    store(repo, "refs/c/large", ABOUT, part("work/b", "x" * 5000))
    store(repo, "refs/c/deep", ABOUT, work, part("run/" + "d/" * 40 + "x", "1"))
    store(repo, "refs/c/elsewhere", ABOUT, work, part("hooks/x", "1"))
    store(repo, "refs/c/nothing", ABOUT)
    git(repo, "update-ref", "refs/c/blob", git(repo, "rev-parse", "main:README.md"))
    names = ["large", "good", "deep", "elsewhere", "nothing", "blob", "gone"]
    found = read_checkpoints(open_farm(repo).repository, [f"refs/c/{one}" for one in names], most_bytes=4000)
    kinds = {ref.removeprefix("refs/c/"): type(one) for ref, one in found.items()}
    assert kinds == {name: Checkpoint if name == "good" else NoCheckpoint for name in names}
    assert found["refs/c/good"].commit == good  # type: ignore[union-attr]


def test_one_that_is_not_whole_spoils_no_other(repo: Path) -> None:
    for name in ("good", "torn"):
        store(repo, f"refs/c/{name}", ABOUT, part(f"work/sub/{name}", name))
    tree = git(repo, "rev-parse", "refs/c/torn:work/sub")
    assert not list((repo / ".git/objects/pack").glob("*.pack")), "few objects are stored one by one"
    (repo / ".git/objects" / tree[:2] / tree[2:]).unlink()
    found = read_checkpoints(open_farm(repo).repository, ["refs/c/good", "refs/c/torn"], most_bytes=4000)
    assert isinstance(found["refs/c/good"], Checkpoint)
    assert isinstance(found["refs/c/torn"], NoCheckpoint)

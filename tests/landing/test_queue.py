"""`af land`: groups that pass land as they were checked, what is red alone goes back, the queue goes on."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git, write_files
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]
Committed = Callable[..., Spawned]

RED = "! ls bad* 2>/dev/null"


@pytest.fixture
def ran(repo: Path) -> Path:
    """The trees that the check ran on; it is red where a file's name begins with `bad`."""
    file = repo.parent / "ran"
    file.touch()
    (repo / ".git/info").mkdir(exist_ok=True)
    with (repo / ".git/info/exclude").open("a") as exclude:
        exclude.write("agent-farm.toml\n")
    set_check(repo, file)
    return file


def set_check(repo: Path, ran: Path, more: str = RED) -> None:
    command = f"git rev-parse HEAD^{{tree}} >> '{ran}'; {more}"
    write_files(repo, {"agent-farm.toml": f'[check]\ncommand = """{command}"""\n'})


@pytest.fixture
def committed(spawn: Spawn) -> Committed:
    def make(**files: str) -> Spawned:
        builder = spawn("--shell")
        commit_files(builder.worktree, {f"{name}.txt": text for name, text in files.items()}, "work")
        return builder

    return make


def land(af: Af, *words: str) -> dict[str, Any]:
    done = af("land", *words, "--yes", "--json")
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert "error" not in found, found
    assert done.returncode == (1 if found["returned"] else 0), done.stderr
    return found


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


def test_good_ones_land_together_as_the_tree_that_was_checked(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one, two = committed(one="1\n"), committed(two="2\n")
    found = land(af, one.id, two.id)
    assert ids(found["landed"]) == [one.id, two.id]
    assert (found["checks"], found["repeats"], found["state"]) == (1, 0, "done")
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    assert ran.read_text().split() == [tree]
    assert (repo / "one.txt").exists()
    assert (repo / "two.txt").exists()
    assert git(repo, "status", "--porcelain") == ""
    message = git(repo, "log", "-1", "--format=%B")
    assert f"Builder: {two.id}\nChecked: " in message
    assert message.endswith(f" on {tree}")
    assert git(repo, "log", "--format=%s", "--first-parent").splitlines()[2] == "first"


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["squash", "rebase"])
def test_each_strategy_leaves_one_line(
    committed: Committed, af: Af, repo: Path, ran: Path, strategy: str
) -> None:
    one, two = committed(one="1\n"), committed(two="2\n")
    commit_files(repo, {"theirs.txt": "x\n"}, "theirs")
    found = land(af, one.id, two.id, "--strategy", strategy)
    assert len(found["landed"]) == 2
    assert git(repo, "log", "--merges", "--format=%s") == ""
    for commit, builder in (("HEAD~1", one), ("HEAD", two)):
        assert f"Builder: {builder.id}\nChecked: " in git(repo, "log", "-1", "--format=%B", commit)
    assert land(af, one.id, "--strategy", strategy)["present"] == [one.id]


def test_the_red_one_goes_back_and_the_others_land(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    good, bad, other = committed(one="1\n"), committed(bad="x\n"), committed(three="3\n")
    found = land(af, good.id, bad.id, other.id)
    assert sorted(ids(found["landed"])) == sorted([good.id, other.id])
    (back,) = found["returned"]
    assert (back["id"], back["kind"]) == (bad.id, "red")
    assert back["evidence"] == ["bad.txt"]
    assert "Your work did not land on main" in af("capture", bad.id).stdout
    assert "bad.txt" in Path(back["log"]).read_text()
    assert not (repo / "bad.txt").exists()
    assert found["repeats"] == 1
    assert git(repo, "rev-parse", "HEAD^{tree}") in ran.read_text().split()
    # it mends it, and lands
    git(bad.worktree, "mv", "bad.txt", "good.txt")
    git(bad.worktree, "commit", "-q", "-m", "mended")
    assert ids(land(af, bad.id)["landed"]) == [bad.id]


def test_in_the_background_another_process_works_the_queue_off(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one, two = committed(one="1\n"), committed(two="2\n")
    found = land(af, one.id, "--background")
    assert (found["state"], ids(found["waiting"])) == ("running", [one.id])
    added = land(af, two.id, "--background")  # to what is under way, or as another landing
    assert two.id in ids(added["waiting"])
    wait_until(lambda: (repo / "one.txt").exists() and (repo / "two.txt").exists(), what="both to land")
    wait_until(lambda: "passed" not in af("land", "--status").stdout, what="the queue to be done")


def test_why_a_landing_stopped_is_told_later(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    commit_files(repo, {"bad.md": "x\n"}, "broken")
    one = committed(one="1\n")
    land(af, one.id, "--background")
    wait_until(
        lambda: "The check fails on main itself" in af("land", "--status").stderr, what="why it stopped"
    )
    done = af("land", one.id, "--background", "--yes")
    assert done.returncode == 1
    assert "A landing on main was cut short" in done.stderr
    assert "The check fails on main itself" in done.stderr
    git(repo, "rm", "-q", "bad.md")
    git(repo, "commit", "-q", "-m", "mended")
    assert ids(land(af, "--continue")["landed"]) == [one.id]


def test_a_conflict_goes_back_with_its_files(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one, two = committed(same="1\n"), committed(same="2\n")
    found = land(af, one.id, two.id)
    assert ids(found["landed"]) == [one.id]
    (back,) = found["returned"]
    assert (back["id"], back["kind"], back["evidence"]) == (two.id, "conflict", ["same.txt"])
    assert len(ran.read_text().split()) == 1


def test_a_name_that_is_no_utf_8_stops_nothing(
    committed: Committed, spawn: Spawn, af: Af, repo: Path, ran: Path
) -> None:
    odd = os.fsdecode(b"odd-\xff.txt")
    one, two = spawn("--shell"), spawn("--shell")
    for builder in (one, two):
        commit_files(builder.worktree, {odd: f"{builder.id}\n"}, "work")
    found = land(af, one.id, two.id)
    assert ids(found["landed"]) == [one.id]
    assert [(back["id"], back["evidence"]) for back in found["returned"]] == [(two.id, [odd])]
    two.git("reset", "-q", "--hard", "main")
    commit_files(two.worktree, {"more.txt": "1\n"}, "more")
    (two.worktree / odd).write_text("not committed\n")
    done = af("check", "--yes", two.id)
    assert "uncommitted: not committed: odd-" in done.stdout, done.stderr
    two.git("checkout", "-q", odd)
    set_check(repo, ran, "for file in odd*; do echo x >> $file; done")
    assert "changed odd-" in af("check", "--yes", two.id).stdout


def test_a_flaky_check_blames_nobody_and_is_told(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one = committed(one="1\n")
    flag = repo.parent / "flag"
    set_check(repo, ran, f"test -e '{flag}' || {{ touch '{flag}'; false; }}")
    found = land(af, one.id)
    assert (ids(found["landed"]), found["flaky"], found["repeats"]) == ([one.id], [[one.id]], 1)


@pytest.mark.slow
def test_a_red_target_blames_nobody(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    commit_files(repo, {"bad.md": "x\n"}, "broken")
    one = committed(one="1\n")
    before = git(repo, "rev-parse", "HEAD")
    done = af("land", one.id, "--yes")
    assert done.returncode == 1
    assert "The check fails on main itself" in done.stderr
    assert git(repo, "rev-parse", "HEAD") == before
    assert json.loads(af("land", "--status", "--json").stdout)["state"] == "stopped"
    git(repo, "rm", "-q", "bad.md")
    git(repo, "commit", "-q", "-m", "mended")
    assert ids(land(af, "--continue")["landed"]) == [one.id]


def test_a_file_that_a_person_edits_stops_the_queue(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one = committed(one="1\n")
    write_files(repo, {"one.txt": "a person's\n"})
    done = af("land", one.id, "--yes")
    assert done.returncode == 1
    assert "uncommitted changes in files that the merge writes" in done.stderr
    assert "af land --continue" in done.stderr
    assert (repo / "one.txt").read_text() == "a person's\n"
    again = af("land", one.id, "--yes")
    assert "was cut short" in again.stderr
    (repo / "one.txt").unlink()
    assert ids(land(af, "--continue")["landed"]) == [one.id]


@pytest.mark.slow
def test_other_uncommitted_work_stays(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one = committed(one="1\n")
    write_files(repo, {"README.md": "being edited\n"})
    assert ids(land(af, one.id)["landed"]) == [one.id]
    assert (repo / "README.md").read_text() == "being edited\n"


def test_without_ids_those_land_whose_turn_has_ended(
    spawn: Spawn, committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one, idle = committed(one="1\n"), spawn()
    spawn("--shell")  # has nothing
    one.stop()
    found = land(af)
    assert ids(found["landed"]) == [one.id, idle.id]
    done = af("land", "--yes")
    assert (done.returncode, "No builder has anything to land" in done.stderr) == (1, True)


def test_without_ids_nobody_lands_whose_turn_was_cut_short(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    whole = committed(whole="1\n")
    half = af("spawn", "[[sleep:600]]", "--runtime", "demo").stdout.strip()
    wait_until(lambda: status_of(af, half)["status"]["state"] == "working", what="it works")
    commit_files(repo / ".builders" / half, {"half.txt": "1\n"}, "half")
    assert af("stop", half).returncode == 0
    done = af("land", "--yes")
    assert f"{half} is left out: its turn was cut short" in done.stderr
    assert done.stdout.startswith(f"{whole.id} landed")
    assert not (repo / "half.txt").exists()
    assert ids(land(af, half)["landed"]) == [half]  # who names it knows


def test_one_that_wrecks_the_place_of_its_check_goes_back_and_the_others_land(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    set_check(repo, ran, '! test -e wreck.txt || rm -rf \\"$PWD\\"')
    good, bad = committed(good="1\n"), committed(wreck="1\n")
    found = land(af, good.id, bad.id)
    assert ids(found["landed"]) == [good.id]
    assert [(one["id"], one["kind"]) for one in found["returned"]] == [(bad.id, "red")]


@pytest.mark.slow
def test_one_that_cannot_be_rebased_goes_back_and_the_others_land(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    good, merged = committed(good="1\n"), committed(merged="1\n")
    commit_files(repo, {"main.txt": "1\n"}, "by a person")
    merged.git("merge", "-q", "--no-commit", "main")
    commit_files(merged.worktree, {"only.txt": "1\n"}, "merge")
    commit_files(repo, {"main.txt": "2\n"}, "by a person")
    found = land(af, good.id, merged.id, "--strategy", "rebase")
    assert ids(found["landed"]) == [good.id]
    assert [(one["id"], one["kind"]) for one in found["returned"]] == [(merged.id, "refused")]
    assert "holds changes of its own" in found["returned"][0]["what"]


@pytest.mark.slow
def test_a_dry_run_says_what_the_landing_then_does(
    committed: Committed, spawn: Spawn, af: Af, repo: Path, ran: Path
) -> None:
    one, two, none = committed(same="1\n"), committed(two="2\n"), spawn("--shell")
    commit_files(repo, {"same.txt": "by a person\n"})
    (two.worktree / "left.txt").touch()
    done = af("land", one.id, two.id, none.id, "--dry-run")
    assert f"{one.id} would not land: It conflicts with main" in done.stdout
    assert f"{none.id}  has nothing to land" in done.stdout
    assert f"check {two.id}" in done.stdout
    assert f"{two.id} has uncommitted files, which do not land: left.txt" in done.stderr
    write_files(repo, {"two.txt": "in the way\n"})
    assert af("land", two.id, "--yes").returncode == 1
    for words in (["land", "--dry-run"], ["land"]):
        assert "A landing on main was cut short" in af(*words).stderr
    both = af("land", "--status", "--continue")
    assert (both.returncode, "--status cannot be combined with --continue" in both.stderr) == (2, True)


@pytest.mark.slow
def test_what_lands_while_the_queue_is_emptied_is_told(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one, two = committed(one="1\n"), committed(bad="2\n")
    aborted = repo.parent / "aborted"
    hook = repo / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    package = Path(__file__).parents[2]
    abort = f"cd '{repo}' && PYTHONPATH='{package}' '{sys.executable}' -m agent_farm land --abort"
    hook.write_text(
        f'#!/bin/sh\n[ "$1" = committed ] && grep -q refs/heads/main || exit 0\n'
        f"test -e '{aborted}' && exit 0; touch '{aborted}'; unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE\n"
        f"({abort}) > '{aborted}' 2>&1\n"
    )
    hook.chmod(0o755)
    done = af("land", one.id, two.id, "--yes")
    assert f"{one.id} landed, checked as tree" in done.stdout
    assert "The landing was aborted in the meantime" in done.stderr
    told = aborted.read_text()
    assert f"In the middle of landing: {one.id}; af status says" in told
    assert f"Not landed: {two.id}" in told
    assert (repo / "one.txt").exists()


@pytest.mark.slow
def test_a_queue_whose_worktree_is_gone_can_be_emptied(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one = committed(one="1\n")
    linked = repo.parent / "linked"
    git(repo, "switch", "-q", "-c", "side")
    git(repo, "worktree", "add", "-q", str(linked), "main")
    write_files(linked, {"one.txt": "in the way\n"})
    assert af("land", one.id, "--yes", cwd=linked).returncode == 1
    shutil.rmtree(linked)
    done = af("land", "--continue")
    assert (done.returncode, "hint: af land --abort" in done.stderr) == (1, True)
    assert f"Not landed: {one.id}" in af("land", "--abort").stderr
    assert "There is no landing" in af("land", "--status").stderr


def test_one_that_is_over_names_what_comes_next_and_is_not_continued(
    committed: Committed, af: Af, ran: Path
) -> None:
    one = committed(one="1\n")
    done = af("land", one.id, "--yes")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "hint: af prune --landed")
    ran.with_name("other").touch()
    set_check(one.repo, ran.with_name("other"))  # nobody has agreed to it
    done = af("land", "--continue")
    assert done.returncode == 1
    assert "There is no landing to continue" in done.stderr


@pytest.mark.slow
def test_a_dry_run_says_groups_and_does_nothing(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one, two = committed(one="1\n"), committed(two="2\n")
    found = json.loads(af("land", one.id, two.id, "--dry-run", "--json").stdout)
    assert found["groups"] == [[one.id, two.id]]
    assert ids(found["waiting"]) == [one.id, two.id]
    assert f"check {one.id}, {two.id}\n" in af("land", one.id, two.id, "--dry-run").stdout
    clashing = committed(one="another\n")
    found = json.loads(af("land", one.id, clashing.id, two.id, "--dry-run", "--json").stdout)
    assert set(found["groups"][0]) == {one.id, two.id}
    commit_files(repo, {"two.txt": "a person's\n"})
    found = json.loads(af("land", one.id, two.id, "--dry-run", "--json").stdout)
    assert [(row["id"], row["told"]) for row in found["returned"]] == [(two.id, None)]
    assert ran.read_text() == ""
    assert json.loads(af("land", "--status", "--json").stdout)["state"] == "none"


def test_without_a_check_nothing_lands(committed: Committed, af: Af) -> None:
    one = committed(one="1\n")
    done = af("land", one.id)
    assert (done.returncode, "hint: af config set check.command" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_hook_that_refuses_sends_its_work_back(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    hook = repo / ".git/hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    one, two = committed(one="1\n"), committed(two="2\n")
    hook.write_text(f'#!/bin/sh\n! grep -q "Builder: {one.id}" "$1" || {{ echo no ticket; exit 1; }}\n')
    hook.chmod(0o755)
    found = land(af, one.id, two.id)
    assert ids(found["landed"]) == [two.id]
    (back,) = found["returned"]
    assert (back["id"], back["kind"], back["evidence"]) == (one.id, "refused", ["no ticket"])


@pytest.mark.slow
def test_two_checks_side_by_side_land_the_same(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    with (repo / "agent-farm.toml").open("a") as settings:
        settings.write("[landing]\nchecks_at_once = 2\n")
    good, bad, other = committed(one="1\n"), committed(bad="x\n"), committed(three="3\n")
    found = land(af, good.id, bad.id, other.id)
    assert sorted(ids(found["landed"])) == sorted([good.id, other.id])
    assert ids(found["returned"]) == [bad.id]


@pytest.mark.slow
def test_abort_leaves_what_has_landed(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one = committed(one="1\n")
    write_files(repo, {"one.txt": "in the way\n"})
    assert af("land", one.id, "--yes").returncode == 1
    assert f"Not landed: {one.id}" in af("land", "--abort").stderr
    assert af("land", "--abort").returncode == 1
    (repo / "one.txt").unlink()
    assert ids(land(af, one.id)["landed"]) == [one.id]


@pytest.mark.slow
def test_uncommitted_work_lands_on_request(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one = committed(one="1\n")
    write_files(one.worktree, {"one.txt": "changed\n", "new.txt": "new\n"})
    before, tip = one.git("status", "--porcelain"), one.tip
    found = land(af, one.id, "--include-uncommitted", "--strategy", "squash")
    assert ids(found["landed"]) == [one.id]
    assert (repo / "one.txt").read_text() + (repo / "new.txt").read_text() == "changed\nnew\n"
    assert (one.git("status", "--porcelain"), one.tip) == (before, tip)


@pytest.mark.slow
def test_a_file_that_a_check_names_is_agreed_to_again(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    """A builder's own Makefile runs in its check; what runs on the next ones is the person's to agree to."""
    commit_files(repo, {"Makefile": "test:\n\ttrue\n"}, "make")
    write_files(repo, {"agent-farm.toml": '[check]\ncommand = "make test"\n'})
    one, two = committed(one="1\n"), committed(two="2\n")
    commit_files(one.worktree, {"Makefile": "test:\n\ttrue # other\n"})
    commit_files(two.worktree, {"Makefile": "test:\n\ttrue # another\n"})
    found = land(af, one.id, two.id)
    assert ids(found["landed"]) == [one.id]
    commit_files(two.worktree, {"three.txt": "3\n"})
    done = af("land", two.id)
    assert (done.returncode, "nobody has agreed" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_signed_landing_is_signed_once_it_lands(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    signed = repo.parent / "signed"
    gpg = repo.parent / "gpg"
    gpg.write_text(
        f"#!/bin/sh\necho x >> {signed}\ncat > /dev/null\n"
        "echo '[GNUPG:] SIG_CREATED D' >&2\necho '-----BEGIN PGP SIGNATURE-----'\n"
        "echo\necho '-----END PGP SIGNATURE-----'\n"
    )
    gpg.chmod(0o755)
    git(repo, "config", "gpg.program", str(gpg))
    one, two = committed(one="1\n"), committed(two="2\n")
    git(repo, "config", "commit.gpgSign", "true")
    assert len(land(af, one.id, two.id)["landed"]) == 2
    assert signed.read_text().count("x") == 2
    for commit in ("HEAD", "HEAD~1"):
        assert "gpgsig" in git(repo, "cat-file", "commit", commit)


def test_a_queue_that_cannot_be_read_is_named(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one = committed(one="1\n")
    file = repo / ".agent-farm/landing.json"
    assert ids(land(af, one.id)["landed"]) == [one.id]
    document = json.loads(file.read_text())
    unknown = {"waiting": [{"id": "nobody", "age": 0, "risk": 0.1}]}
    moving = {"before": document["head"], "after": document["head"], "ids": ["nobody"]}
    changes: list[dict[str, Any]] = [{"head": "--help"}, {"line": unknown}, {"moving": moving}]
    damaged = [(json.dumps(document | {"closed": False, **change}), "is damaged") for change in changes]
    for content, word in (("{", "is damaged"), ('{"version": 2}', "has version 2"), *damaged):
        file.write_text(content)
        for words in (["land", one.id, "--yes"], ["land", "--status"], ["land", "--abort"], ["doctor"]):
            done = af(*words)
            assert done.returncode == 1
            assert word in done.stdout + done.stderr, words
        assert file.read_text() == content


@pytest.mark.slow
def test_a_commit_made_while_it_is_checked_does_not_land(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one = committed(one="1\n")
    script = repo.parent / "late.sh"
    script.write_text(f"cd '{one.worktree}' && touch late && git add late && git commit -q -m late\n")
    set_check(repo, ran, f"sh '{script}'")
    assert ids(land(af, one.id)["landed"]) == [one.id]
    assert not (repo / "late").exists()
    assert one.git("log", "-1", "--format=%s") == "late"


@pytest.mark.slow
def test_what_passed_another_check_has_passed_nothing(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one = committed(one="1\n")
    write_files(repo, {"one.txt": "in the way\n"})
    assert af("land", one.id, "--yes").returncode == 1
    (repo / "one.txt").unlink()
    set_check(repo, ran, "test ! -e one.txt")
    found = land(af, "--continue")
    assert (ids(found["landed"]), ids(found["returned"])) == ([], [one.id])


@pytest.mark.slow
def test_work_that_was_discarded_does_not_land(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one, two = committed(one="1\n"), committed(two="2\n")
    write_files(repo, {"one.txt": "in the way\n"})
    assert af("land", one.id, two.id, "--yes").returncode == 1
    (repo / "one.txt").unlink()
    removed = af("prune", "--stop", "--discard-commits", one.id)
    assert removed.returncode == 0, removed.stderr
    done = af("land", "--continue", "--yes")
    assert f"{one.id} did not land: it was removed" in done.stdout
    found = json.loads(af("land", "--status", "--json").stdout)
    assert (ids(found["landed"]), ids(found["returned"])) == ([two.id], [one.id])
    assert not (repo / "one.txt").exists()


@pytest.mark.slow
def test_another_builder_of_the_same_name_does_not_land_for_it(
    spawn: Spawn, af: Af, repo: Path, ran: Path
) -> None:
    old = spawn("--shell", "--name", "same")
    commit_files(old.worktree, {"old.txt": "1\n"})
    write_files(repo, {"old.txt": "in the way\n"})
    assert af("land", old.id, "--yes").returncode == 1
    (repo / "old.txt").unlink()
    assert af("prune", "--stop", "--discard-commits", old.id).returncode == 0
    new = spawn("--shell", "--name", "same")
    assert new.id == old.id
    done = af("land", "--continue", "--yes")
    assert f"{old.id} did not land: it was removed" in done.stdout
    assert not (repo / "old.txt").exists()
    commit_files(new.worktree, {"new.txt": "1\n"})
    assert ids(land(af, new.id)["landed"]) == [new.id]
    assert not (repo / "old.txt").exists()


@pytest.mark.slow
def test_a_newer_commit_takes_the_place_of_the_one_that_waits(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    one, go = committed(one="1\n"), repo.parent / "go"
    set_check(repo, ran, f"while ! test -e '{go}'; do sleep 0.1; done")
    assert af("land", one.id, "--background", "--yes").returncode == 0
    wait_until(lambda: ran.read_text() != "", what="its check to begin")
    old = one.tip
    new = commit_files(one.worktree, {"two.txt": "2\n"})
    done = af("land", one.id, "--yes")
    assert f"{one.id} was queued with {old[:10]}; {new[:10]} replaces it" in done.stderr
    go.touch()
    wait_until(lambda: "landed as" in af("land", "--status").stdout, what="the newer one to land")
    assert (repo / "two.txt").exists()
    assert json.loads(af("land", "--status", "--json").stdout)["returned"] == []


@pytest.mark.slow
def test_what_may_have_been_sent_is_not_sent_again(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    bad, file = committed(bad="x\n"), repo / ".agent-farm/landing.json"
    before = time.time()
    land(af, bad.id)

    def killed(sent_at: float) -> dict[str, Any]:
        queue = json.loads(file.read_text())
        queue["closed"] = False
        queue["returned"][0] |= {"told": None, "sent_at": sent_at}
        file.write_text(json.dumps(queue))
        (back,) = land(af, "--continue")["returned"]
        return dict(back)

    assert killed(before)["told"] == "submitted"
    doubted = killed(time.time() + 60)
    assert doubted["told"].startswith("failed: af was killed while sending it")
    assert doubted["hint"].startswith(f"af send {bad.id} ")
    assert af("capture", bad.id).stdout.count("Your work did not land on main") == 1

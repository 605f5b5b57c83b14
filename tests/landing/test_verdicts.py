"""What checks say about a tree: on that tree alone, kept, within bounds, and nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_farm.consent import remember
from agent_farm.disk import file_lock
from agent_farm.errors import ConsentNeeded
from agent_farm.farm.declared_checks import Check, agree_to_checks, checks_of_merge, declared_checks
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.landing.check_run import HALF
from agent_farm.landing.verdicts import Verdict, kept_verdict, verdict_of
from agent_farm.settings import open_settings
from tests.conftest import Af
from tests.foundation.test_clock_jumps import YEAR, last_look
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until


def farm_with(repo: Path, settings: str, *, agreed: bool = True) -> Farm:
    (repo / "agent-farm.toml").write_text(settings)
    if agreed:
        remember(repo, open_settings(repo).asking())
    return open_farm(repo)


def checked(repo: Path, command: str, **options: object) -> Verdict:
    farm = farm_with(repo, f"[check]\ncommand = {json.dumps(command)}\n")
    return verdict_of(farm, "HEAD", declared_checks(farm), **options)  # type: ignore[arg-type]


def names(checks: tuple[Check, ...]) -> list[str]:
    return [check.name for check in checks]


def test_what_is_declared_and_what_a_merge_runs(repo: Path) -> None:
    farm = farm_with(repo, "")
    assert declared_checks(farm) == checks_of_merge(farm) == ()
    farm = farm_with(repo, '[merge]\ncheck = "m"\n')
    assert names(declared_checks(farm)) == names(checks_of_merge(farm)) == ["merge"]
    farm = farm_with(
        repo,
        '[check.lint]\ncommand = "l"\n[check.test]\ncommand = "t"\n[check]\ncommand = "c"\nseconds = 5\n',
    )
    assert [(one.name, one.command, one.seconds) for one in declared_checks(farm)] == [
        ("check", "c", 5), ("lint", "l", 5), ("test", "t", 5),
    ]  # fmt: skip
    assert checks_of_merge(farm) == declared_checks(farm)
    farm = farm_with(repo, '[merge]\ncheck = "m"\n[check]\ncommand = "c"\n')
    assert (names(declared_checks(farm)), names(checks_of_merge(farm))) == (["check"], ["merge"])


def test_nothing_runs_that_nobody_agreed_to(repo: Path) -> None:
    wanted = '[check.a]\ncommand = "touch ../../../ran"\n[env]\npass = ["TOKEN"]\n'
    farm = farm_with(repo, wanted, agreed=False)
    with pytest.raises(ConsentNeeded):
        verdict_of(farm, "HEAD", declared_checks(farm))
    assert not (repo / "ran").exists()
    with pytest.raises(ConsentNeeded) as refused:
        agree_to_checks(farm, declared_checks(farm), yes=False, ask=None)
    assert len(refused.value.evidence) == 2


@pytest.mark.parametrize("cone", ["--cone", "--no-cone", "--sparse-index"])
@pytest.mark.parametrize("shared", [False, True])
def test_the_tree_is_whole_whatever_part_the_person_sees(repo: Path, cone: str, shared: bool) -> None:
    """`shared`: as git before 2.25 wrote it, for all worktrees."""
    commit_files(repo, {"a/x": "x\n", "b/y": "y\n"})
    git(repo, "sparse-checkout", "init", cone)
    git(repo, "sparse-checkout", "set", "a")
    if shared:
        git(repo, "config", "--unset", "extensions.worktreeConfig")
        git(repo, "config", "core.sparseCheckout", "true")
    assert not (repo / "b").exists()
    assert checked(repo, "cat b/y && git read-tree -mu HEAD && cat b/y").passed
    assert not (repo / "b").exists()


def test_the_tree_is_clean_detached_and_alone_and_so_is_the_environment(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s")
    monkeypatch.setenv("AF_BUILDER_ID", "me")
    (repo / "README.md").write_text("changed")
    told: list[str] = []
    verdict = checked(repo, "git status -sb; ls; cat README.md; env; cat; echo err >&2", tell=told.append)
    assert verdict.passed
    assert told[:3] == ["## HEAD (no branch)", "README.md", "# scratch"]
    assert told[-1] == "err"
    assert not [line for line in told if line.startswith(("SECRET", "AF_", "TMUX"))]
    assert (result := verdict.results[0]).log.read_text().splitlines() == told
    assert (result.tree, result.exit_code, result.signal) == (git(repo, "rev-parse", "HEAD^{tree}"), 0, None)
    assert git(repo, "worktree", "list").count("\n") == 0


def test_a_tree_is_checked_once_whatever_commit_holds_it(repo: Path) -> None:
    count = repo.parent / "count"
    command = f"echo x >> '{count}'; test ! -e '{repo.parent}/red'"
    assert checked(repo, command).passed
    git(repo, "commit", "-q", "--allow-empty", "-m", "same tree")
    assert checked(repo, command).passed
    assert count.read_text() == "x\n"
    (repo.parent / "red").touch()
    again = checked(repo, command, reuse="none")
    assert not again.passed
    assert again.results[0].unsteady
    assert not checked(repo, command).passed  # a red one is kept as well
    assert count.read_text() == "x\n" * 2
    assert not checked(repo, command, reuse="green").passed
    assert count.read_text() == "x\n" * 3
    commit_files(repo, {"other": "tree"})
    farm = open_farm(repo)
    assert kept_verdict(farm, git(repo, "rev-parse", "HEAD~1^{tree}"), declared_checks(farm)) is not None
    assert kept_verdict(farm, git(repo, "rev-parse", "HEAD^{tree}"), declared_checks(farm)) is None


def test_a_result_that_cannot_be_read_is_found_anew(repo: Path) -> None:
    first = checked(repo, "true").results[0]
    file = first.log.with_suffix(".json")
    for damaged in ("{", json.dumps(json.loads(file.read_text()) | {"version": 2})):
        file.write_text(damaged)
        assert checked(repo, "true").passed
        assert json.loads(file.read_text())["version"] == 1


def test_the_checks_stop_at_the_first_that_is_red_and_see_nothing_of_each_other(repo: Path) -> None:
    farm = farm_with(
        repo,
        '[check.a]\ncommand = "touch left"\n[check.b]\ncommand = "test -e left"\n'
        '[check.c]\ncommand = "true"\n',
    )
    verdict = verdict_of(farm, "HEAD", declared_checks(farm))
    assert [(one.name, one.told) for one in verdict.results] == [
        ("a", "passed"), ("b", "failed with exit code 1"),
    ]  # fmt: skip
    assert verdict.failed is verdict.results[1]
    assert verdict_of(farm, "HEAD", ()).passed is False


@pytest.mark.parametrize(
    "command", ["echo x >> README.md", "rm README.md", "echo x >> README.md; git commit -qam x"]
)
def test_a_check_that_changes_tracked_files_saw_another_tree(repo: Path, command: str) -> None:
    verdict = checked(repo, command)
    assert not verdict.passed
    assert verdict.results[0].exit_code == 0
    assert verdict.results[0].changed == ("README.md",)


@pytest.mark.parametrize(
    "command",
    ['rm -rf "$PWD"', 'rm -rf "$(git rev-parse --git-dir)"', 'echo x > "$(git rev-parse --git-dir)/index"'],
)
def test_a_check_that_wrecks_its_worktree_is_red_and_stops_nothing(repo: Path, command: str) -> None:
    verdict = checked(repo, command)
    assert verdict.results[0].told == "changed its whole worktree, so it did not see the tree that would land"
    assert checked(repo, f"test -e README.md # {command}").passed
    assert git(repo, "worktree", "list").count("\n") == 0


def test_what_waits_in_the_place_of_the_log_is_not_written_to(repo: Path) -> None:
    log, mine = checked(repo, "echo said").results[0].log, repo.parent / "mine"
    mine.write_text("mine\n")
    log.unlink()
    log.symlink_to(mine)
    assert checked(repo, "echo said", reuse="none").passed
    log.unlink()
    os.mkfifo(log)
    assert checked(repo, "echo said", reuse="none").passed
    assert (log.read_text(), mine.read_text()) == ("said\n", "mine\n")


def _alive(file: Path) -> bool:
    """Whether one of the processes whose ids are in `file` lives."""
    return any(Path(f"/proc/{pid}").exists() for pid in file.read_text().split())


LEAVES = "sleep 600 & echo $! > '{0}'; setsid sleep 600 & echo $! >> '{0}'; echo $$ >> '{0}'; touch '{0}.all'"


def test_the_time_limit_ends_all_of_it(repo: Path) -> None:
    pids = repo.parent / "pids"
    command = f"echo said; {LEAVES.format(pids)}; trap '' TERM; sleep 600"
    farm = farm_with(repo, f"[check]\nseconds = 1\ncommand = {json.dumps(command)}\n")
    result = verdict_of(farm, "HEAD", declared_checks(farm)).results[0]
    assert (result.timed_out, result.exit_code, result.passed) == (True, None, False)
    assert result.log.read_text() == "said\n"
    assert not _alive(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_of_it_outlives_its_asker(repo: Path, number: signal.Signals, af: Af) -> None:
    pids = repo.parent / "pids"
    farm_with(repo, f"[check]\ncommand = {json.dumps(LEAVES.format(pids) + '; sleep 600')}\n")
    code = (
        "from pathlib import Path; from agent_farm.farm.farm import open_farm;"
        "from agent_farm.farm.declared_checks import declared_checks;"
        "from agent_farm.landing.verdicts import verdict_of;"
        "farm = open_farm(Path('.')); verdict_of(farm, 'HEAD', declared_checks(farm))"
    )
    asker = subprocess.Popen([sys.executable, "-c", code], cwd=repo, stderr=subprocess.DEVNULL)
    wait_until(lambda: Path(f"{pids}.all").exists(), timeout=60, what="the check")
    os.kill(asker.pid, number)
    asker.wait(60)
    wait_until(lambda: not _alive(pids), timeout=60, what="the end of its processes")
    trials = repo / ".agent-farm/trials"
    if number == signal.SIGKILL:
        assert list(trials.iterdir())
        assert "an interrupted merge or check" in af("doctor", "--fix").stdout
    assert not list(trials.iterdir())
    assert git(repo, "worktree", "list").count("\n") == 0


def test_a_log_keeps_its_beginning_and_its_end(repo: Path) -> None:
    command = f"echo first; yes 0123456789 | head -c {3 * HALF}; head -c {1 << 20} /dev/zero; echo; echo last"
    result = checked(repo, command).results[0]
    text = result.log.read_bytes()
    assert text.startswith(b"first\n")
    assert text.endswith(b"last\n")
    assert b"lines are left out)\n" in text
    assert len(text) < 2 * HALF + 100_000


def test_several_at_a_time_have_a_tree_each_and_one_tree_is_checked_once(repo: Path) -> None:
    commits = [commit_files(repo, {"number": f"{number}\n"}) for number in range(3)]
    seen = repo.parent / "seen"
    seen.mkdir()
    command = f"cat number >> '{seen}'/$(cat number); sleep 0.3; pwd"
    farm = farm_with(repo, f"[check]\ncommand = {json.dumps(command)}\n")
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(verdict_of, farm, one, declared_checks(farm)) for one in commits * 2]
        assert all(one.result().passed for one in asked)
    assert {file.name: file.read_text() for file in seen.iterdir()} == {str(n): f"{n}\n" for n in range(3)}
    assert not list((repo / ".agent-farm/trials").iterdir())
    assert not list((repo / ".agent-farm/checks").glob("*.lock"))


def test_old_results_outlive_a_clock_that_jumps(repo: Path) -> None:
    log = checked(repo, ": 1").results[0].log
    for file in (log, log.with_suffix(".json")):
        os.utime(file, (1, 1))
    last_look(repo, YEAR)
    checked(repo, ": 2")
    assert log.exists()
    last_look(repo, 0)
    checked(repo, ": 3")
    assert not log.exists()


def test_old_results_go_and_those_of_a_check_that_runs_stay(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for number in range(3):
        results.append(checked(repo, f": {number}").results[0].log)
        os.utime(results[-1], (number, number))
        os.utime(results[-1].with_suffix(".json"), (number, number))
    assert not any(log.exists() or log.with_suffix(".json").exists() for log in results[:2])
    place = results[0].parent
    monkeypatch.setattr("agent_farm.landing.verdicts.MOST_KEPT", 1)
    log = checked(repo, ": again").results[0].log
    assert {file.stem for file in place.glob("*.*")} == {log.stem}
    with file_lock(log.with_suffix(".lock")):
        newest = checked(repo, ": newest").results[0].log
        assert log.exists()
    assert newest.exists()

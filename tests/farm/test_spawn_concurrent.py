"""Many `af spawn` at once: as many builders, nothing shared, nothing else left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.settings import load_settings
from tests.conftest import Af
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, make_repo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
MANY = 40


def all_at_once(repo: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "agent_farm", *words],
            cwd=repo,
            env=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in commands
    ]
    answers = [process.communicate(timeout=300) for process in running]
    return [(process.returncode, *answer) for process, answer in zip(running, answers, strict=True)]


@pytest.mark.parametrize("time", [1, 2, 3])
def test_forty_spawns_of_the_same_text(repo: Path, time: int) -> None:
    done = all_at_once(repo, *[["spawn", "--runtime", "demo", "Fix auth"]] * MANY)
    assert [answer for answer in done if answer[0]] == []
    ids = {out.strip() for _, out, _ in done}
    assert len(ids) == MANY
    wait_until(lambda: traces(repo).processes == ids, timeout=120, what="40 launchers")
    found = traces(repo)
    for place in ("records", "worktrees", "registered", "runs", "ports", "locks"):
        assert getattr(found, place) == ids, place
    assert found.branches == {f"builder/{id}" for id in ids}
    assert len(found.sessions) == MANY
    assert not found.trash
    assert not found.temporary
    _assert_distinct_ports(repo)
    assert set((repo / ".agent-farm/locks").iterdir()) == {
        repo / f".agent-farm/locks/{name}.lock" for name in ("worktrees", *(f"builder-{id}" for id in ids))
    }
    assert git(repo, "status", "--porcelain") == ""


def _assert_distinct_ports(repo: Path) -> None:
    records = json.loads((repo / ".agent-farm/registry.json").read_text())["builders"].values()
    ports = [port for record in records for port in record["ports"]]
    assert len(ports) == MANY * load_settings(repo).number("ports.per_builder")
    assert len(set(ports)) == len(ports)


def test_of_many_spawns_of_one_spec_one_wins(repo: Path) -> None:
    commit_files(repo, {"codev/specs/0009-login.md": "# Login\n"})
    done = all_at_once(repo, *[["spawn", "--runtime", "demo", "-p", "9"]] * 8)
    won = [answer for answer in done if answer[0] == 0]
    assert len(won) == 1, done
    for code, out, err in done:
        if code:
            assert (code, out) == (2, "")
            assert "already has a builder" in err
    assert traces(repo).records == traces(repo).worktrees == {"0009"}


def test_protocols_of_the_same_second_get_different_ids(repo: Path) -> None:
    commit_files(repo, {"codev/protocols/cleanup/protocol.md": "# Cleanup\n"})
    done = all_at_once(repo, *[["spawn", "--runtime", "demo", "--protocol", "cleanup"]] * 8)
    assert [code for code, *_ in done] == [0] * 8, done
    assert len({out for _, out, _ in done}) == 8


def test_two_farms_of_one_name_share_nothing(tmp_path: Path) -> None:
    """Same directory name, same text: sessions and ports are apart all the same."""
    farms = [make_repo(tmp_path / place / "app") for place in ("one", "two")]
    for repo in farms:
        for code, _, err in all_at_once(repo, *[["spawn", "--runtime", "demo", "Fix"]] * 5):
            assert code == 0, err
    one, two = (traces(repo) for repo in farms)
    assert len(one.sessions) == len(two.sessions) == 5
    assert one.sessions.isdisjoint(two.sessions)
    blocks = json.loads((Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json").read_text())["farms"]
    ports = [port for farm in blocks.values() for block in farm.values() for port in block]
    assert len(ports) == len(set(ports)) == 100


def test_status_during_spawns_disturbs_none(repo: Path, af: Af) -> None:
    """It heals what was killed, and must not take a spawn that is under way for that."""
    commands = [["spawn", "--runtime", "demo", "Fix"], ["status"], ["doctor", "--fix"]] * 6
    done = all_at_once(repo, *commands)
    assert [answer for answer in done if answer[0]] == []
    ids = {out.strip() for words, (_, out, _) in zip(commands, done, strict=True) if words[0] == "spawn"}
    assert traces(repo).records == traces(repo).worktrees == traces(repo).ports == ids
    assert traces(repo).branches == {f"builder/{id}" for id in ids}
    assert len(traces(repo).sessions) == len(ids)


def test_the_limit_holds_for_spawns_at_once(repo: Path) -> None:
    """Stopped ones take no room, those under way do."""
    (repo / "agent-farm.toml").write_text("[limits]\nmax_builders = 3\n")
    old = all_at_once(repo, *[["spawn", "--runtime", "demo", "Old"]] * 3)
    assert all_at_once(repo, ["stop", *(out.strip() for _, out, _ in old)])[0][0] == 0
    done = all_at_once(repo, *[["spawn", "--runtime", "demo", "New", "--no-queue"]] * 10)
    assert sorted(code for code, _, _ in done) == [0] * 3 + [1] * 7
    assert len(traces(repo).records) == 6

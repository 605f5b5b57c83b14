"""`af config`: every setting with its source; a name that is unknown names the nearest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.settings import KEYS
from tests.conftest import Af


def test_a_value_is_set_read_and_unset(repo: Path, af: Af) -> None:
    assert af("config", "set", "spawn.base", "develop").returncode == 0
    assert af("config", "get", "spawn.base").stdout == "develop\n"
    assert (repo / "agent-farm.toml").read_text() == '[spawn]\nbase = "develop"\n'
    assert af("config", "unset", "spawn.base").returncode == 0
    done = af("config", "get", "spawn.base")
    assert (done.returncode, done.stdout) == (1, "")
    assert "spawn.base is not set" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("worktree.carry", "true", "true"),
        ("worktree.copy", ".env, build/", ".env,build/"),
        ("ports.per_builder", "3", "3"),
        ("runtimes.codex.command", "/opt/codex --x", "/opt/codex --x"),
    ],
)
def test_values_of_each_kind(af: Af, name: str, value: str, shown: str) -> None:
    assert af("config", "set", name, value).returncode == 0
    assert af("config", "get", name).stdout == f"{shown}\n"
    assert any(
        line.split()[0] == name and shown in line and "agent-farm.toml" in line
        for line in af("config", "list").stdout.splitlines()
    )


def test_the_list_has_every_key_with_value_and_source(af: Af) -> None:
    af("config", "set", "limits.max_builders", "5")
    lines = {
        line.split()[0]: line
        for line in af("config", "list", env={"AF_TMUX_SOCKET": "x"}).stdout.splitlines()
    }
    assert set(lines) == {key.name for key in KEYS}
    assert lines["limits.max_builders"].split() == ["limits.max_builders", "5", "(agent-farm.toml)"]
    assert lines["tmux.socket"].endswith("x  (AF_TMUX_SOCKET)")
    assert lines["merge.strategy"].endswith("merge  (default)")


def test_the_list_as_json(af: Af) -> None:
    af("config", "set", "worktree.copy", ".env")
    document = json.loads(af("config", "list", "--json").stdout)
    assert document["version"] == 1
    assert document["settings"]["worktree.copy"] == {"value": [".env"], "source": "agent-farm.toml"}
    assert document["settings"]["spawn.runtime"] == {"value": None, "source": "default"}


@pytest.mark.parametrize("words", [["get", "spawn.bse"], ["set", "spawn.bse", "x"], ["unset", "spawn.bse"]])
def test_an_unknown_name_names_the_nearest(repo: Path, af: Af, words: list[str]) -> None:
    done = af("config", *words)
    assert done.returncode == 2
    assert "No setting spawn.bse" in done.stderr
    assert "Did you mean spawn.base?" in done.stderr
    assert not (repo / "agent-farm.toml").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("merge.strategy", "octopus"), ("ports.per_builder", "x"), ("worktree.carry", "1")]
)
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(
    repo: Path, af: Af, name: str, value: str
) -> None:
    af("config", "set", "spawn.base", "develop")
    before = (repo / "agent-farm.toml").read_text()
    done = af("config", "set", name, value)
    assert done.returncode in (1, 2)
    assert name in done.stderr
    assert (repo / "agent-farm.toml").read_text() == before


def test_from_a_linked_worktree_the_main_file_is_changed(repo: Path, af: Af, tmp_path: Path) -> None:
    from tests.gitrepo import git

    git(repo, "worktree", "add", "-q", str(tmp_path / "side"))
    assert af("config", "set", "spawn.base", "develop", cwd=tmp_path / "side").returncode == 0
    assert (repo / "agent-farm.toml").exists()
    assert not (tmp_path / "side/agent-farm.toml").exists()


def test_what_is_set_is_in_force(repo: Path, af: Af) -> None:
    af("config", "set", "spawn.runtime", "demo")
    done = af("spawn", "Fix", "--json")
    assert json.loads(done.stdout)["builder"]["runtime"] == "demo"

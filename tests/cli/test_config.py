"""`af config`: every setting with its source; a name that is unknown names the nearest."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_farm.paths import user_settings_file
from agent_farm.settings_keys import KEYS
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
        ("worktree.uncommitted", "true", "true"),
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
    ("name", "value"),
    [("merge.strategy", "octopus"), ("ports.per_builder", "x"), ("worktree.uncommitted", "1")],
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


@pytest.mark.parametrize("whose", [[], ["--user"]])
def test_a_runtime_that_nobody_has_is_refused_with_those_there_are(
    repo: Path, af: Af, whose: list[str]
) -> None:
    done = af("config", "set", *whose, "spawn.runtime", "nope")
    assert done.returncode == 2
    assert "No runtime nope" in done.stderr
    assert "claude-code" in done.stderr
    assert "Did you mean codex?" in af("config", "set", *whose, "spawn.runtime", "codx").stderr
    assert af("config", "get", "spawn.runtime").returncode == 1


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


# A person's own file


def test_a_personal_setting_holds_where_the_repository_says_nothing(
    repo: Path, af: Af, tmp_path: Path
) -> None:
    outside = tmp_path / "nowhere"
    outside.mkdir()
    for key, value in (("spawn.runtime", "demo"), ("spawn.model", "mine"), ("spawn.permissions", "all")):
        assert af("config", "set", "--user", key, value, cwd=outside).returncode == 0
    file = user_settings_file()
    assert 'permissions = "all"' in file.read_text()
    assert not (repo / "agent-farm.toml").exists()
    plan = json.loads(af("spawn", "--dry-run", "--json", "Fix").stdout)["plan"]
    assert (plan["runtime"], plan["model"]) == ("demo", "mine")
    af("config", "set", "spawn.model", "theirs")
    listed = json.loads(af("config", "list", "--json").stdout)["settings"]
    assert listed["spawn.model"] == {"value": "theirs", "source": "agent-farm.toml"}
    assert listed["spawn.runtime"] == {"value": "demo", "source": str(file)}
    assert af("config", "unset", "--user", "spawn.permissions").returncode == 0
    assert (
        json.loads(af("config", "list", "--json").stdout)["settings"]["spawn.permissions"]["value"] == "edit"
    )


def test_what_does_not_go_beyond_a_persons_own_settings_asks_nobody(repo: Path, af: Af) -> None:
    shared = '[spawn]\npermissions = "all"\n[env]\npass = ["KEY"]\n[runtimes.demo]\nargs = ["-v"]\n'
    (repo / "agent-farm.toml").write_text(shared)
    assert af("spawn", "--runtime", "demo", "--dry-run", "Fix").returncode == 1
    for key, value in (
        ("spawn.permissions", "all"),
        ("env.pass", "OTHER,KEY"),
        ("runtimes.demo.args", "-v"),
    ):
        af("config", "set", "--user", key, value)
    assert af("spawn", "--runtime", "demo", "--dry-run", "Fix").returncode == 0


def test_a_repository_that_widens_a_persons_ask_to_edit_is_asked_about(repo: Path, af: Af) -> None:
    af("config", "set", "--user", "spawn.permissions", "ask")
    (repo / "agent-farm.toml").write_text('[spawn]\npermissions = "edit"\n')
    assert "spawn.permissions: edit" in af("spawn", "--runtime", "demo", "--dry-run", "Fix").stderr


def test_a_personal_command_needs_no_consent_and_is_asked_for_its_version(
    repo: Path, af: Af, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.write_text("#!/bin/sh\necho 9.8.7\n")
    own.chmod(0o755)
    af("config", "set", "--user", "runtimes.codex.command", str(own))
    listed = json.loads(af("runtimes", "--json").stdout)["runtimes"]
    assert next(one["version"] for one in listed if one["name"] == "codex") == "9.8.7"


def test_a_mistake_in_the_personal_file_is_told_with_the_way_out(af: Af) -> None:
    user_settings_file().parent.mkdir(parents=True)
    user_settings_file().write_text('[spawn]\nruntme = "demo"\n')
    assert "warning: " in af("status").stderr
    refused = af("spawn", "--runtime", "demo", "Fix")
    assert f"{user_settings_file()}: unknown key spawn.runtme" in refused.stderr
    assert "hint: af config unset --user spawn.runtme" in refused.stderr
    assert af("config", "unset", "--user", "spawn.runtme").returncode == 0
    assert af("spawn", "--runtime", "demo", "--dry-run", "Fix").returncode == 0


@pytest.mark.parametrize("where", [[], ["--user"]])
def test_ten_at_once_lose_nothing(repo: Path, af: Af, where: list[str]) -> None:
    names = [f"runtimes.r{number}.model" for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda name: af("config", "set", *where, name, "m"), names))
    assert [one.returncode for one in done] == [0] * 10
    settings = json.loads(af("config", "list", "--json").stdout)["settings"]
    assert [settings[name]["value"] for name in names] == ["m"] * 10


def test_what_is_not_set_is_nothing_and_exit_code_1(af: Af) -> None:
    for name in ("spawn.model", "worktree.copy", "env.pass"):
        done = af("config", "get", name)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"error: {name} is not set\nhint: af config set {name} VALUE\n"


def test_a_value_may_begin_with_a_dash(af: Af) -> None:
    assert af("config", "set", "runtimes.codex.args", "--x,-y").returncode == 0
    assert af("config", "get", "runtimes.codex.args").stdout == "--x,-y\n"
    assert "at least 0" in af("config", "set", "limits.max_builders", "-3").stderr


def test_a_key_is_set_beside_a_mistake(repo: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text('[spawn]\nruntme = "demo"\n')
    assert af("config", "set", "spawn.base", "main").returncode == 0
    (repo / "agent-farm.toml").write_text('spawn = "demo"\n')
    refused = af("config", "set", "spawn.base", "main")
    assert "unknown key spawn" in refused.stderr
    assert refused.returncode == 1

"""`af init`: what it gives, what it leaves alone, and where it refuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from agent_farm.builders.roles import PACKAGED_ROLE
from agent_farm.cli.command_table import COMMANDS
from agent_farm.errors import AgentFarmError
from agent_farm.farm.scaffolding import create_file, init_farm, scaffold_files, starter_settings
from agent_farm.settings import load_settings
from agent_farm.settings_keys import KEYS, RUNTIME_KEYS
from tests.conftest import Af
from tests.gitrepo import git, write_files

PROJECT = Path(__file__).parents[2]
# Commands of later doors that roles may name before this version has them.
KNOWN_COMMANDS = set(COMMANDS) | {"diff", "merge", "conflicts", "prune", "restore", "config"}


def tree(root: Path) -> dict[str, bytes]:
    """All files of a checkout but git's own."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def test_gives_roles_protocols_templates_and_settings(repo: Path) -> None:
    created, kept = init_farm(repo)
    assert set(created) == set(tree(repo)) - {"README.md"}
    assert kept == ()
    for protocol in ("spider", "tick", "cleanup", "experiment", "bugfix"):
        assert (repo / f"codev/protocols/{protocol}/protocol.md").is_file()
    for name in ("roles/architect.md", "roles/builder.md", "templates/spec.md", "templates/plan.md"):
        assert (repo / "codev" / name).is_file()


def test_a_second_run_changes_nothing(repo: Path, af: Af) -> None:
    assert af("init").returncode == 0
    before = tree(repo)
    again = af("init")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == f"Nothing to do: all {len(before) - 1} files exist.\n"
    assert tree(repo) == before


def test_keeps_what_a_person_wrote(repo: Path) -> None:
    mine = {"codev/roles/builder.md": "mine\n", "agent-farm.toml": "[ports]\nper_builder = 3\n"}
    write_files(repo, mine)
    created, kept = init_farm(repo)
    assert {name: (repo / name).read_text() for name in mine} == mine
    assert set(kept) == set(mine)
    assert "codev/roles/architect.md" in created


def test_says_the_commit_to_make_and_it_works(repo: Path, af: Af) -> None:
    hint = af("init").stderr.splitlines()[-1]
    assert hint == 'hint: git add codev agent-farm.toml && git commit -m "Set up agent-farm"'
    for command in hint.removeprefix("hint: git ").split(" && git "):
        git(repo, *shlex.split(command))
    assert git(repo, "status", "--porcelain") == ""


def test_writes_to_the_top_of_the_checkout_from_below(repo: Path, af: Af) -> None:
    below = repo / "src/deep"
    below.mkdir(parents=True)
    done = af("init", cwd=below)
    assert (repo / "codev/roles/builder.md").is_file()
    assert f"hint: cd {repo} && git add codev" in done.stderr


def test_in_a_linked_worktree_the_main_checkout_is_left_alone(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    init_farm(tmp_path / "linked")
    assert (tmp_path / "linked/codev").is_dir()
    assert not (repo / "codev").exists()


def test_a_repository_without_a_commit_is_enough(tmp_path: Path, af: Af) -> None:
    git(tmp_path, "init", "-q", "new")
    assert af("init", cwd=tmp_path / "new").returncode == 0
    assert (tmp_path / "new/codev").is_dir()


def test_json_names_every_file(repo: Path, af: Af) -> None:
    document = json.loads(af("init", "--json").stdout)
    assert document["version"] == 1
    assert document["created"] == list(scaffold_files())
    assert document["root"] == str(repo)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("theirs")
    assert create_file(tmp_path / "file", b"ours") is False
    assert (tmp_path / "file").read_text() == "theirs"


@pytest.mark.parametrize("place", ["codev", "codev/protocols", "codev/protocols/spider"])
def test_a_file_where_a_directory_should_be_is_refused_before_anything_is_written(
    repo: Path, place: str
) -> None:
    write_files(repo, {place: "a file\n"})
    before = tree(repo)
    with pytest.raises(AgentFarmError, match=re.escape(f"{repo / place} is not a directory")):
        init_farm(repo)
    assert tree(repo) == before


def test_a_directory_where_a_file_should_be_is_refused(repo: Path) -> None:
    (repo / "agent-farm.toml").mkdir()
    with pytest.raises(AgentFarmError, match=r"agent-farm.toml is a directory"):
        init_farm(repo)
    assert not (repo / "codev").exists()


@pytest.mark.parametrize("link", ["codev", "codev/roles"])
def test_nothing_is_written_through_a_link_that_leaves_the_repository(
    repo: Path, tmp_path: Path, link: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / link).parent.mkdir(exist_ok=True)
    (repo / link).symlink_to(outside)
    with pytest.raises(AgentFarmError, match="leads out of the repository"):
        init_farm(repo)
    assert list(outside.iterdir()) == []


def test_a_link_inside_the_repository_is_followed(repo: Path) -> None:
    (repo / "docs/codev").mkdir(parents=True)
    (repo / "codev").symlink_to("docs/codev")
    init_farm(repo)
    assert (repo / "docs/codev/roles/builder.md").is_file()


def test_a_file_that_links_to_nothing_stays_as_it_is(repo: Path, tmp_path: Path) -> None:
    (repo / "agent-farm.toml").symlink_to(tmp_path / "absent")
    assert "agent-farm.toml" in init_farm(repo)[1]
    assert not (tmp_path / "absent").exists()


def test_a_directory_that_cannot_be_written_is_a_clear_error(repo: Path, af: Af) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is read-only for root")
    (repo / "codev").mkdir(mode=0o500)
    done = af("init")
    assert done.returncode == 1
    assert "Cannot write" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_leaves_no_half_file(repo: Path, af: Af) -> None:
    """RLIMIT_FSIZE fails a write in the middle, as a full disk does."""
    import resource
    import subprocess
    import sys

    def at_most_1500_bytes() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    command = [sys.executable, "-m", "agent_farm", "init"]
    done = subprocess.run(
        command, cwd=repo, preexec_fn=at_most_1500_bytes, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Cannot write" in done.stderr
    wanted = scaffold_files()
    assert all(tree(repo)[name] == wanted[name] for name in tree(repo) if name in wanted)


@pytest.mark.parametrize("where", ["nowhere", "bare"])
def test_outside_a_checkout_is_a_clear_error(tmp_path: Path, af: Af, where: str) -> None:
    (tmp_path / "nowhere").mkdir()
    git(tmp_path, "init", "-q", "--bare", "bare")
    done = af("init", cwd=tmp_path / where)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "hint: " in done.stderr


def test_starter_settings_set_nothing(repo: Path) -> None:
    init_farm(repo)
    settings = load_settings(repo, environ={})
    assert dict(settings.values) == {key.name: key.default for key in KEYS}
    assert settings.runtimes == {}


def test_starter_settings_name_every_key_with_its_default(repo: Path) -> None:
    active = re.sub(r"(?m)^# (\w+ = |\[)", r"\1", starter_settings())
    document = tomllib.loads(active)
    assert set(document.pop("runtimes")["claude-code"]) == {key.name for key in RUNTIME_KEYS}
    assert set(document["check"].pop("lint")) == {"command"}
    for key in KEYS:
        table, _, name = key.name.partition(".")
        shown = document[table].pop(name)
        assert shown == (
            "…" if key.default is None else list(key.default) if key.kind is list else key.default
        )
    assert not any(document.values())


def test_this_project_uses_the_scaffold_it_gives() -> None:
    wanted = {name: content for name, content in scaffold_files().items() if name.startswith("codev/")}
    assert {name: (PROJECT / name).read_bytes() for name in wanted} == wanted


def test_the_packaged_role_is_part_of_the_scaffold() -> None:
    assert PACKAGED_ROLE.read_bytes() == scaffold_files()["codev/roles/builder.md"]


def test_roles_and_protocols_name_only_commands_that_exist() -> None:
    named = {
        command
        for content in scaffold_files().values()
        for command in re.findall(r"`(?:[^`\n]*\$\()?af ([a-z]+)", content.decode())
    }
    assert {"spawn", "status", "send", "wait", "diff", "merge", "prune", "restore"} <= named
    assert named <= KNOWN_COMMANDS

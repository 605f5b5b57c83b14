"""SKILL.md: all that it names exists, `af --skill` prints it, `af init --skill` puts it where CLIs look."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from agent_farm.builders.status import STATES
from agent_farm.cli.main import cli
from agent_farm.farm.scaffolding import SKILL, SKILL_PLACES
from agent_farm.operations.table import offered
from agent_farm.server.tools import NOT_FOR_PROGRAMS
from tests.conftest import Af
from tests.gitrepo import git, write_files

TEXT = SKILL.read_text()
QUOTED = re.findall(r"`([^`]+)`", TEXT)
COMMANDS = [code for code in QUOTED if code.startswith("af ") and "COMMAND" not in code]
TOOL = re.compile(r"(\w+)\(([\w, ]*)\)")
TOOLS = [found for code in QUOTED if (found := TOOL.fullmatch(code))]


def test_its_form_is_that_of_agentskills_io() -> None:
    front = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n\n# ", TEXT)
    assert front is not None
    name, description = front.groups()
    assert name == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(description) <= 1024
    assert ": " not in description  # plain YAML
    assert len(TEXT) < 15_000  # well below 5,000 tokens
    assert len(TEXT.splitlines()) < 500


@pytest.mark.parametrize("typed", COMMANDS)
def test_each_command_in_it_and_each_of_its_options_exist(typed: str) -> None:
    command: click.Command = cli
    words = shlex.split(typed)[1:]
    context = click.Context(cli)
    while words and isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None, typed
        command = found
    known = {option for param in command.params for option in param.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_each_tool_in_it_and_each_of_its_fields_exist() -> None:
    fields = {
        operation.name: set(operation.request.__struct_fields__) - set(NOT_FOR_PROGRAMS)
        for operation in offered("mcp", "architect")
    }
    unknown = [
        call[0] for call in TOOLS if not set(filter(None, call[2].split(", "))) <= fields.get(call[1], {"?"})
    ]
    assert unknown == []
    assert [call[0] for call in TOOLS if call[1] not in fields] == []


def test_the_way_from_spawn_to_landed_is_there_at_both_doors() -> None:
    way = {"spawn", "queue", "wait", "status", "capture", "logs", "diff", "send", "stop", "resume", "check"}
    way |= {"conflicts", "land", "merge", "sync", "prune", "restore", "recover", "doctor"}
    assert way <= {shlex.split(code)[1] for code in COMMANDS}
    assert way <= {call[1] for call in TOOLS}


def test_it_says_what_to_do_in_each_state() -> None:
    rows = re.findall(r"(?m)^\| (`[a-z`, ]+`) \|", TEXT)
    assert sorted(state for row in rows for state in re.findall(r"\w+", row)) == sorted(STATES)


def test_af_prints_it_anywhere(tmp_path: Path, af: Af) -> None:
    done = af("--skill", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, TEXT, "")


def test_init_puts_it_where_clis_look_and_the_commit_it_names_works(repo: Path, af: Af) -> None:
    assert "af init --skill" in af("init").stderr
    done = af("init", "--skill")
    assert "af init --skill" not in done.stderr
    for name in SKILL_PLACES:
        assert (repo / name).read_text() == TEXT
    _commit_as_told(repo, done.stderr)
    assert git(repo, "status", "--porcelain") == ""


def test_init_keeps_a_skill_that_is_there_and_says_so(repo: Path, af: Af) -> None:
    write_files(repo, {SKILL_PLACES[0]: "mine\n"})
    found = json.loads(af("init", "--skill", "--json").stdout)
    assert (repo / SKILL_PLACES[0]).read_text() == "mine\n"
    assert SKILL_PLACES[0] in found["kept"]
    assert SKILL_PLACES[1] in found["created"]


def test_one_directory_of_skills_for_all_is_followed(repo: Path, af: Af) -> None:
    (repo / ".agents/skills").mkdir(parents=True)
    (repo / ".claude").symlink_to(".agents")
    done = af("init", "--skill")
    assert (done.returncode, (repo / SKILL_PLACES[1]).read_text()) == (0, TEXT)
    _commit_as_told(repo, done.stderr)


def _commit_as_told(repo: Path, stderr: str) -> None:
    for command in stderr.splitlines()[-1].removeprefix("hint: git ").split(" && git "):
        git(repo, *shlex.split(command))

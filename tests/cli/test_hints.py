"""A word that is off is answered with the command that was meant, complete and quoted for a shell."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from agent_farm.cli.command_table import ALSO_CALLED, COMMANDS
from tests.conftest import Af
from tests.farm.traces import traces
from tests.gitrepo import commit_files


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["Fix", "the", "login"], 'af spawn "Fix the login"'),
        (["--runtime", "demo", "Don't", "stop"], 'af spawn "Don\'t stop"'),
        (["Print", "$HOME", "`x`"], "af spawn 'Print $HOME `x`'"),
        (["--", "-rf", "is not", "handled"], 'af spawn -- "-rf is not handled"'),
    ],
)
def test_a_task_that_was_not_quoted(af: Af, repo: Path, words: list[str], hint: str) -> None:
    done = af("spawn", *words)
    assert done.returncode == 2
    assert f"hint: {hint}\n" in done.stderr
    assert shlex.split(hint)[-1] == " ".join(
        word for word in words if word not in ("--", "--runtime", "demo")
    )
    assert not traces(repo).records


@pytest.mark.parametrize(
    ("words", "places"),
    [
        (["text", "--task-file", "todo.md"], "as an argument and as --task-file."),
        (["--task", "text", "--task-file", "todo.md"], "as --task and as --task-file."),
        (["text", "--task", "text"], "as an argument and as --task."),
    ],
)
def test_a_task_given_twice_names_both_places(af: Af, repo: Path, words: list[str], places: str) -> None:
    (repo / "todo.md").write_text("Fix\n")
    done = af("spawn", *words)
    assert done.returncode == 2
    assert "Give the task once" in done.stderr
    assert f"It is given both {places}\n" in done.stderr


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("ls", "status"), ("list", "status"), ("rm", "prune"), ("cleanup", "prune"), ("delete", "prune"),
        ("log", "logs"), ("open", "attach"), ("cd", "path"), ("kill", "stop"), ("new", "spawn"),
        ("create", "spawn"), ("statsu", "status"), ("LS", "status"),
    ],
)  # fmt: skip
def test_what_other_tools_call_it(af: Af, word: str, meant: str) -> None:
    done = af(word)
    assert done.returncode == 2
    assert done.stderr == f"error: No command {word}\n  Did you mean {meant}?\nhint: af {meant} --help\n"


def test_other_names_are_no_commands_and_lead_to_one() -> None:
    assert not ALSO_CALLED.keys() & COMMANDS.keys()
    assert all(meant in COMMANDS or meant.startswith("--") for meant in ALSO_CALLED.values())


@pytest.mark.parametrize("word", ["foo", "hello", "xyz"])
def test_a_far_off_word_gets_no_suggestion(af: Af, word: str) -> None:
    assert af(word).stderr == f"error: No command {word}\nhint: af --help\n"


def test_attach_without_an_id(af: Af, repo: Path) -> None:
    assert "hint: af spawn" in af("attach").stderr
    idle, waiting = (
        af("spawn", "--runtime", "demo", text).stdout.strip() for text in ("Fix", "[[ask:May I?]]")
    )
    af("wait", idle, waiting, "--timeout", "300")
    done = af("attach")
    assert done.returncode == 2
    lines = [line.split()[:2] for line in done.stderr.splitlines()]
    assert lines == [["error:", "Name"], [waiting, "waiting"], [idle, "idle"], ["hint:", "af"]]
    assert f"hint: af attach {waiting}\n" in done.stderr
    af("stop", waiting)
    assert f"hint: af capture {idle}" in af("attach").stderr  # the only one, and this is no terminal
    af("stop", idle)
    assert "No builder has a tmux session" in af("attach").stderr


@pytest.mark.parametrize("words", [[], ["sources"], ["butler"], ["config"]])
def test_no_command_at_all_shows_the_help_and_no_error(af: Af, words: list[str]) -> None:
    done = af(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == af(*words, "--help").stdout
    assert done.stderr.startswith("Usage: af")


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("status", "[ID]..."), ("prune", "[ID]..."), ("conflicts", "[ID]..."), ("stop", "[ID]..."),
        ("wait", "ID..."), ("merge", "ID..."), ("attach", "[ID]"), ("spawn", "[TASK]"),
        ("send", "ID... [TEXT|-]"),
    ],
)  # fmt: skip
def test_the_usage_says_how_many(af: Af, name: str, usage: str) -> None:
    assert af(name, "--help").stdout.splitlines()[0] == f"Usage: af {name} [OPTIONS] {usage}"


def test_the_help_of_spawn_says_what_permissions_are(af: Af) -> None:
    help = re.sub(r"\s+", " ", af("spawn", "--help").stdout)
    assert "ask: nothing; edit: change files in its worktree, but run no command; all: everything" in help
    assert "Default: spawn.permissions, else edit" in help
    assert "af runtimes lists them" in help
    assert "$0.13" in af("status", "--help").stdout


def test_the_documented_help_has_the_short_option() -> None:
    from tools.docs import commands

    assert "--help" in commands()
    assert commands().count("-h, --help") == commands().count(" --help  ")


def test_a_dry_run_reads_like_text(af: Af, repo: Path) -> None:
    commit_files(repo, {"a.py": "", "src/b.py": "", "codev/protocols/try/protocol.md": "# Try\n"})
    done = af("spawn", "--runtime", "demo", "--dry-run", "Fix\nit", "--files", "a.py,src/b.py")
    assert "context_files a.py, src/b.py\n" in done.stdout
    assert "prompt        Fix\n              it\n" in done.stdout
    done = af("spawn", "--runtime", "demo", "--dry-run", "--protocol", "try", "--args", '{"a": [1, "ü"]}')
    assert 'protocol_args {"a": [1, "ü"]}\n' in done.stdout


def test_the_server_started_at_a_time_that_people_read(af: Af, repo: Path) -> None:
    try:
        assert af("butler", "start").returncode == 0
        assert re.search(r"^started_at  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", af("butler", "status").stdout, re.M)
        assert isinstance(json.loads(af("butler", "status", "--json").stdout)["server"]["started_at"], float)
    finally:
        af("butler", "stop", "--now")


def test_an_option_that_takes_one_value_is_refused_with_two(repo: Path, af: Af) -> None:
    done = af("spawn", "-p", "0009", "--project", "0010", "--dry-run")
    assert done.returncode == 2
    assert "error: --project is given 2 times" in done.stderr

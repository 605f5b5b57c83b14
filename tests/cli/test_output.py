"""Text is an interface: stdout is the answer, stderr the narration, and every end has its exit code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from agent_farm.cli import main as door
from agent_farm.cli.cells import money
from agent_farm.cli.command_table import COMMANDS
from agent_farm.cli.family import Family
from agent_farm.cli.output import printable, show_error
from agent_farm.cli.upkeep import _show_finding
from agent_farm.errors import AgentFarmError, NotDelivered, TimedOut, UsageError, WorkWouldBeLost
from agent_farm.farm.checks.finding import Level
from agent_farm.operations.doctor import Found
from tests.conftest import Af
from tests.gitrepo import git

ERROR = ["code", "what", "why", "hint", "evidence", "consent"]


def test_help_names_every_command_with_a_line(af: Af) -> None:
    done = af("--help")
    assert done.returncode == 0
    for name, entry in COMMANDS.items():
        assert any(line.split()[:1] == [name] and entry.help in line for line in done.stdout.splitlines()), (
            name
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(af: Af, name: str) -> None:
    for flag in ("--help", "-h"):
        done = af(name, flag)
        assert done.returncode == 0, done
        assert done.stdout.startswith(f"Usage: af {name}")
        assert max(map(len, done.stdout.splitlines())) <= 80  # a narrow terminal breaks no word of it
        assert done.stderr == ""


def _families() -> list[str]:
    commands = {name: door.cli.get_command(click.Context(door.cli), name) for name in COMMANDS}
    return [name for name, command in commands.items() if isinstance(command, Family)]


@pytest.mark.parametrize("name", _families())
def test_the_help_of_a_command_with_others_below_it_cuts_no_sentence(af: Af, name: str) -> None:
    _, _, listed = af(name, "--help").stdout.partition("\nCommands:\n")
    assert listed
    assert "..." not in listed


def test_help_works_outside_a_repository(af: Af, tmp_path: Path) -> None:
    (tmp_path / "nowhere").mkdir()
    assert af("spawn", "--help", cwd=tmp_path / "nowhere").returncode == 0


def test_version(af: Af) -> None:
    assert af("--version").stdout.startswith("af 0.")


def test_no_words_at_all_show_the_help(af: Af) -> None:
    done = af()
    assert "af spawn" in done.stderr
    assert (done.returncode, done.stdout) == (2, "")


def test_an_unknown_command_names_the_nearest(af: Af) -> None:
    done = af("spwan", "x")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: No command spwan\n  Did you mean spawn?\nhint: af spawn --help\n"


def test_an_unknown_option_is_a_usage_error_with_the_help_to_read(af: Af) -> None:
    done = af("status", "--frehs")
    assert done.returncode == 2
    assert "--frehs" in done.stderr
    assert "hint: af status --help" in done.stderr


def test_the_long_name_is_the_same_program() -> None:
    place = Path(sys.executable).parent
    for name in ("af", "agent-farm"):
        done = subprocess.run([place / name, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("af ")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (AgentFarmError("x"), 1),
        (UsageError("x"), 2),
        (RuntimeError("x"), 3),
        (WorkWouldBeLost("x"), 4),
        (NotDelivered("x"), 5),
        (TimedOut("x"), 124),
        (KeyboardInterrupt(), 130),
        (PermissionError(13, "Permission denied", "/etc/shadow"), 1),
        (OSError(28, "No space left on device"), 1),
        (RecursionError("deep"), 3),
        (MemoryError(), 3),
    ],
)
def test_every_end_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: BaseException, code: int
) -> None:
    def raise_it(*args: object, **kwargs: object) -> None:
        raise raised

    monkeypatch.setattr(door.cli, "main", raise_it)
    assert door.run(["status"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert door.run(["status", "--json"]) == code
    out, err = capsys.readouterr()
    if code != 130:
        document = json.loads(out)
        assert (document["version"], list(document["error"])) == (1, ERROR)


def test_a_bug_is_logged_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the cause")

    monkeypatch.setattr(door.cli, "main", fail)
    assert door.run(["status"]) == 3
    err = capsys.readouterr().err
    (log,) = (Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/logs").iterdir()
    assert str(log) in err
    assert "RuntimeError: the cause" in log.read_text()
    assert "Traceback" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_breaks_no_word_of_an_error_and_no_command_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    what, hint = "The file of the settings cannot be read by anybody", "af config set --user env.pass A,B,C,D"
    error = AgentFarmError(what, why=f"{what} at all.", evidence=[f"{what}, said cat"], hint=hint)
    shown = {}
    for stream in (_Screen(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        show_error(error, as_json=False)
        shown[stream.isatty()] = stream.getvalue()
    evidence = f"  {what}, said cat\nhint: {hint}\n"
    assert shown[False] == f"error: {what}\n  {what} at all.\n{evidence}"
    assert shown[True] == (
        "error: The file of the settings cannot\n  be read by anybody\n"
        f"  The file of the settings cannot be\n  read by anybody at all.\n{evidence}"
    )


def test_an_error_on_the_terminal_has_what_why_evidence_and_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AgentFarmError("It broke", why="Because.", evidence=["a", "b\x1b[2J"], hint="af status")

    monkeypatch.setattr(door.cli, "main", fail)
    door.run(["status"])
    assert capsys.readouterr().err == "error: It broke\n  Because.\n  a\n  b\\x1b[2J\nhint: af status\n"
    door.run(["status", "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == dict(
        zip(ERROR, ("error", "It broke", "Because.", "af status", ["a", "b\x1b[2J"], None), strict=True)
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢字 🤖", "plain ü 漢字 🤖"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\r\x07\x00\x7f\x9b", "\\x0d\\x07\\x00\\x7f\\x9b"),
        ("\udcff", "\\xdcff"),
    ],
)
def test_what_is_shown_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_direction_mark_cannot_reorder_what_is_shown() -> None:
    assert "\u202e" not in printable("safe\u202egnp.exe")


def test_a_reader_that_goes_away_is_no_error(repo: Path) -> None:
    """`af status | head -0`"""
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m agent_farm --help | true; "
                          f"'{sys.executable}' -m agent_farm config list | head -n 1"],
        cwd=repo, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_standard_output_that_is_full_is_no_traceback(repo: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agent_farm", "config", "list"],
            cwd=repo, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


def test_a_standard_output_that_is_closed_is_no_traceback(repo: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec '{sys.executable}' -m agent_farm config list >&-"],
        cwd=repo, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


WAITS = "threading.Thread(target=lambda: ended.wait(1) or print('last')).start()"


@pytest.mark.parametrize("waits", ["atexit.register(print, 'last')", WAITS], ids=["atexit", "thread"])
def test_what_waits_for_the_end_of_a_command_comes_to_its_own(waits: str) -> None:
    code = (
        "import atexit, threading; from agent_farm.cli.main import main; ended = threading.Event()\n"
        f"{waits}\nmain(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "last"


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_no_colour_where_there_is_no_terminal_or_it_is_not_wanted(af: Af, variables: dict[str, str]) -> None:
    af("spawn", "--runtime", "demo", "Fix")
    assert "\x1b" not in af("status", env=variables).stdout


def test_the_table_fits_its_terminal(af: Af, repo: Path) -> None:
    """And shows the task, not a branch that only repeats the id or fills the line, whatever the task says."""
    id = af("spawn", "--runtime", "demo", "Fix \x1b[31m" + "a very long task " * 20).stdout.strip()
    assert af("wait", id).returncode == 0
    for columns in ("40", "60", "80", "100", "119", "120", "130", "147", "200", "0", "many"):
        done = af("status", env={"COLUMNS": columns})
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        lines = done.stdout.splitlines()
        assert lines[0].split()[:2] == ["id", "state"]
        assert lines[2] == "Tasks (1)"
        assert "builder/task" not in done.stdout
        if columns.isdigit() and columns != "0":
            assert max(map(len, lines)) <= int(columns)
            assert "Fi" in lines[3]
            assert int(columns) < 60 or "a very" in lines[3]
    git(repo / ".builders" / id, "switch", "-q", "-c", "feature/a-branch-with-a-long-name-of-its-own")
    for columns in ("60", "80"):
        assert "  Fix " in af("status", env={"COLUMNS": columns}).stdout


def test_who_needs_a_person_comes_first_over_all_types(af: Af, repo: Path) -> None:
    af("spawn", "--runtime", "demo", "Work [[nocommit]]")
    asks = af("spawn", "--runtime", "demo", "Clean up [[ask:Delete 14 stale sessions?]]").stdout.strip()
    assert af("wait", asks, "--for", "waiting").returncode == 0
    af("spawn", "--shell", "--runtime", "demo")
    lines = af("status", env={"COLUMNS": "80"}).stdout.splitlines()
    assert lines[2] == "Needs you (1)"
    assert lines[3].split()[:2] == [asks, "waiting"]
    assert lines[4] == "    Delete 14 stale sessions?"
    assert [line for line in lines if line.endswith(")")] == ["Needs you (1)", "Tasks (1)", "Shells (1)"]


def test_watch_has_no_json(af: Af) -> None:
    done = af("status", "--watch", "--json")
    assert done.returncode == 2
    assert "mutually exclusive: --watch, --json" in done.stdout


def test_what_costs_less_than_a_cent_is_not_called_free() -> None:
    assert [money(one) for one in (0.0, 0.0004, 0.005, 0.129, 12.0)] == [
        "$0.00",
        "<$0.01",
        "$0.01",
        "$0.13",
        "$12.00",
    ]


def test_a_finding_has_its_mark_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a terminal is so narrow that its first word goes into the next line."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    findings: dict[Level, str] = {"problem": f"/srv/{40 * 'x'} is gone", "ok": "git is there"}
    for level, what in findings.items():
        _show_finding(Found(level, what, healed=None, error=None, remedy=None, heals=False))
    assert capsys.readouterr().out.splitlines() == [
        "problem ",
        f"        /srv/{40 * 'x'}",
        "        is gone",
        "ok      git is there",
    ]

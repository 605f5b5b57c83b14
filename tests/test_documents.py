"""Documents that are generated match the code, and links between documents lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import click
import pytest

from agent_farm.cli.command_table import COMMANDS
from agent_farm.cli.main import cli
from agent_farm.operations.table import load_all
from tools.all_commands import commands_of_verbs

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "codev").rglob("*.md")])
GUIDES = [path for path in DOCUMENTS if path.parent.name != "decisions"]
MODULE = re.compile(r"`([\w/.-]+\.(?:py|js|css|sh))(?:::[^`]*)?`")
EXAMPLES = {"agent_farm/runtimes/acme.py", "tests/run.py"}  # of somebody else's repository
HELP_WANTED = (click.exceptions.NoArgsIsHelpError,) if hasattr(click.exceptions, "NoArgsIsHelpError") else ()
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_generated_documents_match_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run make docs"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    targets = [target for target in LINK.findall(document.read_text()) if "://" not in target]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("document", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_that_are_shown_can_be_typed(document: Path) -> None:
    """Their options exist, and so do as many arguments; one that is only named (`af diff`) may lack some."""
    text = document.read_text()
    shown = re.findall(r"`(af [^`…\n][^`\n]*)`", text)
    for block in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL):
        shown += re.findall(r"(?m)^ *(?:\$ )?(af [^\n]+)", block)
    assert {line: why for line in shown if (why := _problem(_words(line)))} == {}


def _words(line: str) -> list[str]:
    """Of the first command in it, without what is said beside it."""
    lexer = shlex.shlex(re.split(" {2,}", line)[0], posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = takewhile(lambda word: not set(word) <= set("|&;<>()"), lexer)
    return [word for word in words if word.rstrip("…")][1:]


def _problem(words: list[str]) -> str | None:
    command: click.Command | None = cli
    context = click.Context(cli, help_option_names=["-h", "--help"])  # a command keeps those it is asked with
    while isinstance(command, click.Group) and words and words[0] in command.list_commands(context):
        command = command.get_command(context, words.pop(0))
    assert command is not None
    try:
        command.make_context("af", words, parent=context)
    except (click.BadParameter, click.BadOptionUsage, click.exceptions.Exit, *HELP_WANTED):
        return None  # one is missing, or named by what stands for it
    except click.UsageError as error:
        return error.format_message()
    return None


def test_what_no_program_may_do_is_listed() -> None:
    (row,) = re.findall(r"those for a person alone: (.+?)\)? \|", (ROOT / "docs/butler.md").read_text())
    persons = {one.name for one in load_all() if "architect" in one.who and "mcp" not in one.doors}
    assert set(re.findall(r"`(\w+)`", row)) == persons


def test_every_verb_that_is_for_the_terminal_alone_has_a_command() -> None:
    typed = commands_of_verbs()
    assert [one.name for one in load_all() if not one.doors and one.name not in typed] == []


def test_modules_that_documents_name_are_there() -> None:
    """By the end of their path: `operations/send.py`, or `send.py` where the room was named before it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [f"/{file}" for file in listed.splitlines()]
    missing = [
        f"{document.relative_to(ROOT)} names {name}"
        for document in DOCUMENTS
        for name in set(MODULE.findall(document.read_text())) - EXAMPLES
        if not any(file.endswith(f"/{name}") for file in files)
    ]
    assert missing == []


def test_the_readme_of_the_tests_names_each_command_and_files_that_exist() -> None:
    """A name without a directory lies beside the one named before it in its cell."""
    rows = [line for line in (ROOT / "tests/README.md").read_text().splitlines() if line.startswith("|")]
    missing = []
    for cell in (cell for row in rows for cell in row.split("|")):
        place = ROOT / "tests"
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", cell):
            path = ROOT / "tests" / name if "/" in name else place / name
            place = path.parent
            missing += [] if path.exists() else [name]
    assert missing == []
    first = {name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert set(COMMANDS) <= first

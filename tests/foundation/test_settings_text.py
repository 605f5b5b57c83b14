"""`agent-farm.toml` after `af config set` and `unset`: one line differs, every other byte stays."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from agent_farm.farm.scaffolding import starter_settings
from agent_farm.settings import load_settings
from agent_farm.settings_file import set_value, unset_value
from agent_farm.settings_keys import KEYS

BY_HAND = """\
# ours

[spawn]   # how they start
runtime = "codex"          # the cheap one

  # indented, and about the base
  base = "develop" # "#" is no comment in "a # b"
[worktree]
copy = [
    ".env",   # keys
    "config/*.local",
]
setup = '''
npm ci  # [spawn]
permissions = "no key of ours"
'''

[runtimes."my-own"]
args = ["--x", "# y"] # last"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agent-farm.toml"


def changed(file: Path, name: str, value: str | None) -> list[str]:
    """The lines that a set, or an unset, took out and put in."""
    before = file.read_bytes().decode()
    assert set_value(file.parent, name, value) is not None if value else unset_value(file.parent, name)
    lines = [text.replace("\r\n", "\n").split("\n") for text in (before, file.read_bytes().decode())]
    return [line for line in difflib.ndiff(*lines) if line[0] in "+-"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("spawn.permissions", "ask", ['- # permissions = "edit"', '+ permissions = "ask"']),
        ("spawn.runtime", "demo", ['- # runtime = "…"  # not set', '+ runtime = "demo"']),
        ("worktree.copy", ".env,a", ["- # copy = []", '+ copy = [".env", "a"]']),
        ("server.port", "8080", ["- # port = 0", "+ port = 8080"]),
        (
            "runtimes.claude-code.model",
            "opus",
            [
                "- # [runtimes.claude-code]",
                "+ [runtimes.claude-code]",
                '- # model = "…"  # not set',
                '+ model = "opus"',
            ],
        ),
        ("runtimes.codex.model", "o3", ["+ [runtimes.codex]", '+ model = "o3"', "+ "]),
    ],
)
def test_a_starter_file(file: Path, name: str, value: str, expected: list[str]) -> None:
    file.write_text(starter_settings())
    assert changed(file, name, value) == expected


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_each_key_of_a_starter_file_is_set_on_its_line_and_unset_again(file: Path, key: object) -> None:
    name, kind, choices, minimum = key.name, key.kind, key.choices, key.minimum  # type: ignore[attr-defined]
    file.write_text(starter_settings())
    value = {bool: "true", int: str(max(4, minimum or 0)), list: choices[0] if choices else "A,B"}.get(
        kind, (*choices, "x")[0]
    )
    value = "bell" if name == "notify.to" else value
    assert [line[0] for line in changed(file, name, value)] == ["-", "+"]
    assert load_settings(file.parent, {}).source(name) == "agent-farm.toml"
    assert unset_value(file.parent, name)
    assert file.read_text() == starter_settings()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "spawn.runtime",
            "demo",
            [
                '- runtime = "codex"          # the cheap one',
                '+ runtime = "demo"          # the cheap one',
            ],
        ),
        (
            "spawn.base",
            "main",
            [
                '-   base = "develop" # "#" is no comment in "a # b"',
                '+   base = "main" # "#" is no comment in "a # b"',
            ],
        ),
        ("spawn.model", "o3", ['+   model = "o3"']),
        ("worktree.uncommitted", "true", ["+ uncommitted = true"]),
        (
            "worktree.copy",
            "a",
            ["- copy = [", '+ copy = ["a"]', '-     ".env",   # keys', '-     "config/*.local",', "- ]"],
        ),
        ("runtimes.my-own.args", "a#b", ['- args = ["--x", "# y"] # last', '+ args = ["a#b"] # last']),
        ("runtimes.my-own.model", 'q"\\', ['+ model = "q\\"\\\\"']),
        ("pool.size", "2", ["+ ", "+ [pool]", "+ size = 2"]),
        ("spawn.runtime", None, ['- runtime = "codex"          # the cheap one']),
        (
            "worktree.setup",
            None,
            ["- setup = '''", "- npm ci  # [spawn]", '- permissions = "no key of ours"', "- '''"],
        ),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_file_written_by_hand(
    file: Path, name: str, value: str | None, expected: list[str], line_end: str
) -> None:
    file.write_bytes(BY_HAND.replace("\n", line_end).encode())
    assert changed(file, name, value) == expected
    assert b"\r" not in file.read_bytes().replace(b"\r\n", b"")
    assert (b"\n" in file.read_bytes().replace(b"\r\n", b"")) == (line_end == "\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('spawn.base = "x" # ours\n', 'spawn.base = "x" # ours\nspawn.model = "o3"\n'),
        ('[spawn]\n"model" = "x"\n', '[spawn]\n"model" = "o3"\n'),
        ("[ spawn ]\n[pool]\nsize = 1\n", '[ spawn ]\nmodel = "o3"\n[pool]\nsize = 1\n'),
        ("# a\n", '# a\n\n[spawn]\nmodel = "o3"\n'),
        ("", '[spawn]\nmodel = "o3"\n'),
        ("[spawn]", '[spawn]\nmodel = "o3"'),
        (
            '[spawn]\n# model = o3 or so\nbase = "x"\n',
            '[spawn]\n# model = o3 or so\nbase = "x"\nmodel = "o3"\n',
        ),
    ],
)
def test_other_ways_to_write_it(file: Path, text: str, expected: str) -> None:
    file.write_text(text)
    set_value(file.parent, "spawn.model", "o3")
    assert file.read_text() == expected


def test_an_inline_table_is_written_anew_with_the_comments_above(file: Path) -> None:
    file.write_text('# ours\nspawn = { base = "x" }\n')
    set_value(file.parent, "spawn.model", "o3")
    assert file.read_text() == '# ours\n\n[spawn]\nbase = "x"\nmodel = "o3"\n'


def test_the_files_mode_stays(file: Path) -> None:
    file.write_text("[spawn]\n")
    file.chmod(0o600)
    set_value(file.parent, "spawn.model", "o3")
    assert file.stat().st_mode & 0o777 == 0o600

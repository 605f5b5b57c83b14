"""What --json prints is what docs/json.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.conftest import Af
from tests.gitrepo import commit_files

DOCUMENT = Path(__file__).parents[2] / "docs/json.md"


def documented() -> dict[str, str]:
    """Command to the form it prints."""
    rows = re.findall(r"^\| (.+?) \| `(.+?)`", DOCUMENT.read_text(), re.MULTILINE)
    return {command: form for commands, form in rows for command in re.findall(r"`(af [^`]+)`", commands)}


def keys_of(form: str) -> tuple[set[str], dict[str, set[str]]]:
    """The names on the top level, and the ones below those that hold objects."""
    inner = r'"(\w+)": \[?\{(?:[^{}]*?\{)?((?:"\w+"(?:, )?)+)\}\}?\]?'
    rows = {name: set(re.findall(r'"(\w+)"', names)) for name, names in re.findall(inner, form)}
    outer = re.sub(inner, lambda match: f'"{match[1]}"', form)
    return set(re.findall(r'"(\w+)"', outer)), rows


def assert_as_documented(command: str, document: dict[str, Any]) -> None:
    top, rows = keys_of(documented()[command])
    assert document["version"] == 1
    assert top <= document.keys(), command
    found = [value for value in document.values() if isinstance(value, (list, dict))]
    assert any(found) or not rows, f"{command} shows no example"
    for name, keys in rows.items():
        value = document[name]
        inner = value if isinstance(value, list) else [value] if value else []
        if command == "af config list":
            inner = list(value.values())
        assert all(row.keys() == keys for row in inner), command


def test_an_option_that_is_a_verb_of_its_own_is_named_as_it_is_typed() -> None:
    found = documented()
    assert {"af land --status", "af pr --refresh", "af review --approve", "af sessions ID"} <= found.keys()
    assert {"af sessions", "af runtimes", "af butler state get"} <= found.keys()
    assert "af land status" not in found


def test_what_sessions_keep(af: Af, repo: Path) -> None:
    def check(*words: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(af("butler", "state", *words, "--json").stdout)
        assert_as_documented(f"af butler state {words[0]}", document)
        return document

    first = check("set", "seen", '{"day": 3}')
    assert first["value"] == {"day": 3}
    before = str(first["revision"])
    assert check("set", "seen", "three", "--if-revision", before)["value"] == "three"
    assert check("get", "seen")["revision"] > first["revision"]
    assert af("butler", "state", "get", "seen").stdout == "three\n"
    assert af("butler", "state", "set", "seen", "four", "--if-revision", before).returncode == 1
    assert "--butler" in af("butler", "state", "set", "seen", "four", "--if-revision", before).stderr
    assert check("set", "deep", "[" * 20_000)["value"] == "[" * 20_000
    assert check("delete", "deep")["deleted"]
    assert check("list")["state"] == {"seen": "three"}
    assert check("delete", "seen")["deleted"]
    assert "Nothing is kept" in af("butler", "state", "list").stderr


def test_every_command_of_a_builders_life(af: Af, repo: Path) -> None:
    def check(*words: str, as_: str = "", code: int = 0) -> dict[str, Any]:
        done = af(*words, "--json")
        assert done.returncode == code, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        assert_as_documented(as_ or f"af {words[0]}", document)
        return document

    check("spawn", "--shell", "--runtime", "demo", "--dry-run")
    id = check("spawn", "--shell", "--runtime", "demo")["builder"]["id"]
    other = check("spawn", "--shell", "--runtime", "demo")["builder"]["id"]
    check("wait", id, other, "--timeout", "300")
    for builder, text in ((id, "mine\n"), (other, "theirs\n")):
        commit_files(repo / ".builders" / builder, {"same.txt": text})
    check("status")
    check("send", id, "hello")
    check("wait", id, "--timeout", "300")
    check("capture", id)
    check("logs", id)
    check("diff", id)
    check("conflicts", code=1)
    assert af("config", "set", "check.command", "true").returncode == 0
    check("check", id)
    check("merge", id)
    check("stop", "--all")
    check("resume", other)
    check("doctor")
    check("config", "list", as_="af config list")
    check("prune", id, "--discard-commits", "--discard-changes")
    check("restore", "--list", as_="af restore --list")
    check("restore", id)
    check("prune", id, "--discard-commits", "--discard-changes")
    check("prune", "--expire", "0", as_="af prune --expire")


def test_an_error(af: Af) -> None:
    done = af("status", "nobody", "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert list(error) == ["code", "what", "why", "hint", "evidence", "consent"]

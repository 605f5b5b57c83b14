"""The user's own MCP servers are switched off by name where a CLI has no flag for all of them."""

from __future__ import annotations

import json
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from agent_farm.errors import DamagedFile
from agent_farm.runtimes import opencode_config
from agent_farm.runtimes.codex_lock import servers_off
from agent_farm.runtimes.foreign import parse_jsonc


def codex(home: Path, text: str) -> dict[str, str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(text)
    return {"HOME": str(home)}


def test_every_codex_server_is_switched_off(home: Path) -> None:
    env = codex(home, '[mcp_servers.a]\nurl="u"\n[mcp_servers."b. \\"c"]\ncommand="c"\n')
    off = {"enabled": False}
    assert tomllib.loads(f"x = {servers_off(env)}") == {"x": {"a": off, 'b. "c': off}}


def test_without_codex_servers_the_table_is_empty(home: Path) -> None:
    assert servers_off({"HOME": str(home)}) == "{}"


def test_codex_home_is_respected(home: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp_servers.here]\nurl="u"\n')
    assert "here" in servers_off({"HOME": str(home), "CODEX_HOME": str(tmp_path)})


def test_unreadable_codex_configuration_stops_the_start(home: Path) -> None:
    with pytest.raises(DamagedFile, match="not valid TOML"):
        servers_off(codex(home, "["))


def opencode(home: Path, place: str, text: str) -> dict[str, str]:
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return {"HOME": str(home)}


@pytest.mark.parametrize(
    "place", [".config/opencode/opencode.json", ".config/opencode/config.json", ".opencode/opencode.jsonc"]
)
def test_every_opencode_server_is_switched_off(home: Path, place: str) -> None:
    env = opencode(home, place, '{"mcp": {"a": {"url": "http://x"}, /* "no": 1, */ "b": {},}, } // end')
    assert json.loads(opencode_config.overlay(env, []))["mcp"] == {
        "a": {"enabled": False},
        "b": {"enabled": False},
    }


def test_opencode_configuration_elsewhere_is_found(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"mcp": {"mine": {}}}')
    overlay = opencode_config.overlay({"HOME": str(home), "OPENCODE_CONFIG": str(path)}, [])
    assert "mine" in json.loads(overlay)["mcp"]


def test_only_the_sources_may_be_read(home: Path) -> None:
    permission = json.loads(opencode_config.overlay({"HOME": str(home)}, ["/a", "/b/"]))["permission"]
    assert permission["*"] == "deny"
    assert permission["external_directory"] == {"*": "deny", "/a/*": "allow", "/b/*": "allow"}


def test_unreadable_opencode_configuration_stops_the_start(home: Path) -> None:
    env = opencode(home, ".config/opencode/opencode.json", "{")
    with pytest.raises(DamagedFile, match="cannot be read"):
        opencode_config.overlay(env, [])


def test_json_with_comments_leaves_strings_alone() -> None:
    text = '\ufeff{"url": "http://x/*no*/", "b": [1, 2, ], // "c"\n "d": "a,]\\"//", }'
    assert parse_jsonc(text) == {"url": "http://x/*no*/", "b": [1, 2], "d": 'a,]"//'}


@pytest.mark.parametrize(
    "text", ['{"a": "' + '\\"' * 20_000, "/*" * 20_000, '"' * 40_001], ids=["string", "comment", "quotes"]
)
def test_settings_that_never_close_are_gone_through_once(text: str) -> None:
    """A clone may have written them; each of them took from 10 s to minutes."""
    begun = time.process_time()
    with suppress(ValueError):
        parse_jsonc(text)
    assert time.process_time() - begun < 2
    assert parse_jsonc("") == {}

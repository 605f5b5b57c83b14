"""get_adapter, external declarations, and what stays cheap."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.runtimes import ADAPTERS, adapter_names, get_adapter
from agent_farm.runtimes.external_config import RuntimeFileError, declared_runtimes
from agent_farm.runtimes.mcp_config import McpServer, config_directory, one_server
from tests.conftest import Af


def load(root: Path) -> None:
    for runtime in declared_runtimes(root).values():
        if isinstance(runtime, RuntimeFileError):
            raise runtime


def declare(root: Path, **runtimes: object) -> None:
    (root / "agent_runtime.json").write_text(json.dumps({"runtimes": runtimes}))


def test_each_name_gives_an_adapter_of_that_name() -> None:
    for name in ADAPTERS:
        assert get_adapter(name).name == name


def test_an_unknown_name_lists_what_exists(tmp_path: Path) -> None:
    declare(tmp_path, mine={"adapter": "tools/mine"})
    with pytest.raises(ValueError, match=f"{', '.join(ADAPTERS)}, mine"):
        get_adapter("clade", tmp_path)


def test_a_declared_name_is_a_runtime(tmp_path: Path) -> None:
    declare(tmp_path, mine={"adapter": "tools/mine", "timeout_minutes": 0.5, "cleanup": False})
    assert adapter_names(tmp_path)[-1] == "mine"
    adapter = get_adapter("mine", tmp_path)
    assert adapter.name == "mine"
    assert "does not exist" in str(adapter.problem({}))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"adapter": "/abs"}, "leads out"),
        ({"adapter": "../x"}, "leads out"),
        ({"adapter": ""}, "`runtimes.mine.adapter`"),
        ({"adapter": 7}, "`runtimes.mine.adapter`"),
        ({}, "relative"),
        ({"adapter": "x", "timeout": 3}, "timeout_minutes"),
        ({"adapter": "x", "timeout_minutes": 0}, "`runtimes.mine.timeout_minutes`"),
        ({"adapter": "x", "timeout_minutes": True}, "`runtimes.mine.timeout_minutes`"),
        ({"adapter": "x", "timeout_minutes": float("nan")}, "`runtimes.mine.timeout_minutes`"),
        ({"adapter": "x", "timeout_minutes": float("inf")}, "`runtimes.mine.timeout_minutes`"),
        ({"adapter": "x", "cleanup": "yes"}, "`runtimes.mine.cleanup`"),
        ("x", "Expected `object`"),
    ],
)
def test_a_wrong_declaration_is_refused_by_name(tmp_path: Path, given: object, why: str) -> None:
    declare(tmp_path, mine=given)
    with pytest.raises(RuntimeFileError) as caught:
        load(tmp_path)
    assert why in f"{caught.value.what} {caught.value.why}"


@pytest.mark.parametrize("given", [{"adapter": ""}, {"adapter": None}, {"adapter": "../x"}])
def test_a_shipped_name_with_a_wrong_adapter_is_refused(tmp_path: Path, given: object) -> None:
    declare(tmp_path, **{"claude-mcp": given})
    with pytest.raises(RuntimeFileError):
        load(tmp_path)


@pytest.mark.parametrize("name", ["codex", "Big", "a b", "-x", ""])
def test_a_wrong_name_is_refused(tmp_path: Path, name: str) -> None:
    declare(tmp_path, **{name: {"adapter": "x"}})
    with pytest.raises(RuntimeFileError):
        load(tmp_path)


def test_a_symlink_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "link").symlink_to("/bin/sh")
    declare(tmp_path / "repo", mine={"adapter": "link"})
    with pytest.raises(RuntimeFileError):
        load(tmp_path / "repo")


def test_the_config_directory_is_the_documented_one_and_goes_whatever_happens(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path)}
    with config_directory("health", env=env) as first, config_directory("health", env=env) as second:
        assert first != second
        assert first.parent == tmp_path
        assert first.name.startswith("butler_health_")
        assert first.stat().st_mode & 0o077 == 0
    with pytest.raises(RuntimeError), config_directory("health", env=env):
        raise RuntimeError
    assert list(tmp_path.glob("butler_*")) == []


def test_claudes_form_is_the_documented_one(tmp_path: Path) -> None:
    server = McpServer("health", "http://localhost:8001/mcp?runtime_session_id=s", "secret")
    form = json.loads(get_adapter("claude-code").build_config_file({"health": server}, tmp_path).read_text())
    assert list(form) == ["mcpServers"]
    assert list(form["mcpServers"]) == ["health"]
    assert form["mcpServers"]["health"]["url"] == server.url


def test_more_than_one_server_is_no_lock() -> None:
    from agent_farm.errors import UsageError

    with pytest.raises(UsageError):
        one_server({"a": McpServer("a", "u"), "b": McpServer("b", "u")})


def test_the_system_prompt_is_claude_md(tmp_path: Path) -> None:
    adapter = get_adapter("demo")
    assert adapter.parse_system_prompt_file(tmp_path) == ""
    (tmp_path / "CLAUDE.md").write_text("be brief")
    assert adapter.parse_system_prompt_file(tmp_path) == "be brief"


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_what_a_spawn_imports_is_light(name: str) -> None:
    heavy = ("asyncio", "claude_agent_sdk", "mcp", "tomllib", "urllib.request", "logging", "libtmux", "git")
    code = (
        f"import sys; from agent_farm.runtimes import get_adapter; get_adapter({name!r}).problem({{}}); "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_demo_starts_at_once() -> None:
    import time

    begun = time.monotonic()
    command = get_adapter("demo").find_command({}) or ()
    subprocess.run([*command, "headless"], input=b"x", check=True, capture_output=True)
    assert time.monotonic() - begun < 30


THEIRS = {
    "_comment": "Agent runtimes",
    "runtime": "codex-cli-mcp",
    "runtimes": {
        "codex-cli-mcp": {
            "name": "Codex",
            "adapter": "tools/adapter.sh",
            "commands": {"spawn": "codex exec", "resume": "x", "check_status": "y"},
            "session_dir": "sessions/",
            "max_context_tokens": 128000,
            "supports_parallel": True,
            "subagent_style": "mcp-worker",
            "supports_handoffs": True,
            "notes": "…",
        },
        "other": {"adapter": "../out.sh"},
    },
    "session_management": {"max_retries": 3, "timeout_minutes": 30, "cleanup_completed_sessions": False},
}


def test_the_ancestors_file_is_read_and_a_wrong_entry_takes_no_other_along(repo: Path, af: Af) -> None:
    (repo / "agent_runtime.json").write_text(json.dumps(THEIRS))
    (repo / "tools").mkdir()
    adapter = repo / "tools/adapter.sh"
    adapter.write_text("#!/bin/sh\n")
    adapter.chmod(0o755)
    listed = {one["name"]: one for one in json.loads(af("runtimes", "--json").stdout)["runtimes"]}
    assert listed["codex-cli-mcp"]["usable"] is True
    assert "leads out of the repository" in listed["other"]["problem"]
    assert listed["demo"]["usable"] is True
    refused = af("spawn", "--runtime", "other", "Fix")
    assert refused.returncode == 1
    assert "leads out of the repository" in refused.stderr
    assert af("spawn", "--runtime", "codex-cli-mcp", "--dry-run", "Fix").returncode == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"runtimes": 7}'])
def test_a_file_that_is_none_keeps_nobody_from_the_shipped_ones(repo: Path, af: Af, text: str) -> None:
    (repo / "agent_runtime.json").write_text(text)
    listed = af("runtimes")
    assert listed.returncode == 0
    assert "demo" in listed.stdout
    assert "warning: " in listed.stderr
    assert "agent_runtime.json" in listed.stderr
    assert af("spawn", "--runtime", "demo", "--dry-run", "Fix").returncode == 0
    assert af("spawn", "--runtime", "mine", "--dry-run", "Fix").returncode == 1

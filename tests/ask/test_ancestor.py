"""The configuration that lctx itself wrote: read as it is, and written back in its form."""

from __future__ import annotations

import json
from typing import Any

from agent_farm.operations.sources import SourceShown
from tests.ask.stage import Stage

AGENT = {
    "commands": {
        "chat": "{agent} chat",
        "ask": "{agent} --mcp-config {mcp_config_file} -C {working_dir} -p {prompt_file}",
    },
    "addDirFlag": "--add-dir {path}",
    "mcp": {"path": ".mcp.json", "config": {"mcpServers": {}}},
}


def theirs(stage: Stage, *sources: dict[str, Any]) -> None:
    agent = json.loads(json.dumps(AGENT).replace("{agent}", str(stage.script())))
    document = {
        "sourcesDirectory": str(stage.root / "theirs"),
        "sources": list(sources),
        "agents": {"claude-code": agent},
        "defaultAgent": "claude-code",
    }
    stage.config.path.write_text(json.dumps(document))


def test_its_agent_is_run_with_each_source_added(stage: Stage) -> None:
    one, two = stage.directory("one"), stage.directory("two")
    theirs(
        stage,
        {"name": "one", "type": "directory", "path": str(one), "description": "x", "lastUpdated": "y"},
        {"name": "two", "type": "directory", "path": str(two)},
    )
    assert stage.runner.ask(sources=["one", "two"], question="Why?")["answer"]
    seen = stage.seen()
    room = seen["cwd"]
    assert seen["argv"] == [
        *("--mcp-config", seen["argv"][1], "-C", room, "-p", f"{room}/prompt.md"),
        *("--add-dir", str(one), "--add-dir", str(two)),
    ]
    no_servers = seen["argv"][1].removeprefix(f"{room}/")
    assert json.loads(seen["files"][no_servers]) == {"mcpServers": {}}


def test_a_fetched_text_is_a_source_and_one_that_is_none_takes_no_other_along(stage: Stage) -> None:
    text = stage.root / "theirs/docs/bun/content.txt"
    text.parent.mkdir(parents=True)
    text.write_text("bun")
    theirs(
        stage,
        {"name": "bun", "type": "docs", "url": "https://bun.sh/llms.txt"},
        {"name": "odd", "type": "marketplace"},
    )
    listed = {source.name: SourceShown.of(source) for source in stage.sources.overview()}
    assert (listed["bun"].path, listed["bun"].problem) == (str(text), None)
    assert "marketplace" in (listed["odd"].problem or "")
    assert stage.runner.ask(sources=["bun"], question="Why?")["answer"]


def test_it_keeps_its_form_when_a_source_is_added(stage: Stage) -> None:
    theirs(stage, {"name": "one", "type": "directory", "path": "/one", "description": "kept"})
    before = json.loads(stage.config.path.read_text())
    added = stage.directory("two")
    stage.sources.add("two", str(added))
    after = json.loads(stage.config.path.read_text())
    new = {"name": "two", "type": "directory", "path": str(added)}
    assert after == {**before, "sources": [*before["sources"], new]}

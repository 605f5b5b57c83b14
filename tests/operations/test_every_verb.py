"""What holds for every verb of the table, and that each of its doors answers as its schema says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from jsonschema import Draft202012Validator

from agent_farm.cli.main import cli
from agent_farm.errors import UsageError
from agent_farm.operations.operation import Operation
from agent_farm.operations.requests import answer_schema, read_request, request_schema
from agent_farm.operations.table import load, load_all
from agent_farm.server.tools import tools_for
from tests.conftest import Af
from tests.dashboard.stage import Dashboard

OPERATIONS = {operation.name: operation for operation in load_all()}
Verb = Operation[Any, Any]
JSON = {"Content-Type": "application/json"}


@pytest.fixture(params=OPERATIONS.values(), ids=OPERATIONS)
def verb(request: pytest.FixtureRequest) -> Verb:
    operation: Verb = request.param
    return operation


def test_each_field_says_what_it_means_once(verb: Verb) -> None:
    for name, field in request_schema(verb.request)["properties"].items():
        assert field.get("description"), f"{verb.name}: {name}"
        assert not field["description"].endswith("."), f"{verb.name}: {name}"
    assert not verb.summary.endswith(".")


def test_what_a_program_is_told_of_it(verb: Verb) -> None:
    for caller in verb.who:
        tools = [tool for tool in tools_for(caller) if tool.name == verb.name]
        assert len(tools) == ("mcp" in verb.doors)
    for tool in tools:
        hints = tool.annotations
        assert hints is not None
        assert hints.read_only_hint == (verb.effect == "reads")
        assert hints.destructive_hint == (verb.effect == "destroys")
        assert "yes" not in tool.input_schema["properties"], "no program agrees for its user"
    if verb.waits:
        assert "timeout" in verb.request.__struct_fields__
    if "builder" in verb.who:
        assert verb.effect != "destroys"
    if "yes" in verb.request.__struct_fields__:
        assert verb.effect != "reads"


def test_the_command_of_that_name_takes_json(verb: Verb) -> None:
    command = cli.commands.get(verb.name) or cli.get_command(None, verb.name)  # type: ignore[arg-type]
    if command is not None and not hasattr(command, "commands"):
        assert any("--json" in param.opts for param in command.params)


def examples(id: str) -> Iterator[tuple[str, dict[str, Any], list[str] | None]]:
    """Verb, request, and the words for it at the terminal where it has a command there."""
    yield "wait", {"ids": [id], "timeout": 60}, ["wait", id, "--timeout", "60"]
    new = {"shell": True, "runtime": "demo", "dry_run": True}
    yield "spawn", new, ["spawn", "--shell", "--runtime", "demo", "--dry-run"]
    yield "status", {"ids": [id]}, ["status", id]
    yield "queue", {}, ["queue"]
    yield "send", {"ids": [id], "text": "hello"}, ["send", id, "hello"]
    yield "send_keys", {"ids": [id], "keys": "Enter"}, ["send", id, "--keys", "Enter"]
    yield "message_builder", {"id": id, "text": "hello"}, None
    yield "capture", {"id": id}, ["capture", id]
    yield "logs", {"id": id}, ["logs", id]
    yield "path", {"id": id}, ["path", id]
    yield "diff", {"id": id}, ["diff", id]
    yield "review", {}, ["review"]
    yield "review_show", {"id": id}, ["review", id, "--show"]
    yield "review_mark", {"id": id}, ["review", id, "--read"]
    yield "list_builders", {}, None
    yield "landing", {"id": id}, None
    yield "land_status", {}, ["land", "--status"]
    yield "pr_refresh", {}, ["pr", "--refresh"]
    yield "prompt", {"id": id}, None
    yield "choices", {}, None
    yield "recover", {}, ["recover"]
    yield "prune", {"dry_run": True}, ["prune", "--dry-run"]
    yield "stop", {"ids": [id]}, ["stop", id]
    yield "resume", {"id": id}, ["resume", id]
    prompt = {"prompt": "[[say:x]]", "runtime": "demo"}
    yield "trigger", prompt, ["trigger", "--runtime", "demo", "[[say:x]]"]
    yield "trigger", prompt | {"wait": False}, ["trigger", "--no-wait", "--runtime", "demo", "[[say:x]]"]
    yield "sessions_list", {}, ["sessions"]
    yield "schedule_list", {}, ["schedule", "list"]
    yield "usage", {}, None
    yield "state_set", {"key": "a", "value": {"b": [1]}}, None
    yield "state_get", {"key": "a"}, None
    yield "state_list", {}, None
    yield "credentials_list", {}, ["credentials", "list"]
    yield "butler_status", {}, ["butler", "status"]
    yield "list_sources", {}, ["sources", "list"]


def at_the_terminal(af: Af, words: Sequence[str]) -> dict[str, Any]:
    done = af(*words, "--json")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def over_mcp(server: Dashboard, verb: str, request: Mapping[str, Any]) -> dict[str, Any]:
    call = {"name": verb, "arguments": request}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = server.ask(
        "POST", "/mcp", body, headers={"Accept": "application/json, text/event-stream", **JSON}
    )
    (said,) = (line for line in answer.body.splitlines() if line.startswith(b"data: {"))
    result = json.loads(said.removeprefix(b"data: "))["result"]
    assert not result.get("isError"), result
    document: dict[str, Any] = result["structuredContent"]
    return document


def over_http(server: Dashboard, verb: str, request: Mapping[str, Any]) -> dict[str, Any]:
    if load(verb).effect != "reads":
        return dict(server.post(f"/api/{verb}", request))
    return dict(server.get(f"/api/{verb}?{urlencode(request, doseq=True)}"))


def test_every_door_answers_as_the_schema_says(repo: Path, af: Af) -> None:
    id = json.loads(af("spawn", "--runtime", "demo", "[[say:ready]]", "--json").stdout)["builder"]["id"]
    cases, server = list(examples(id)), Dashboard(repo)
    server.start()

    def check(verb: str, document: dict[str, Any]) -> None:
        Draft202012Validator(answer_schema(load(verb).answer)).validate(document)

    try:
        for verb, _, words in cases:
            if words is not None:
                check(verb, at_the_terminal(af, words))
        for door in (over_mcp, over_http):
            for verb, request, _ in cases:
                check(verb, door(server, verb, request))
    finally:
        server.end()


def test_what_is_off_is_named_with_what_it_takes() -> None:
    for values, why in (
        ({"ids": ["a"], "states": ["idel"]}, "did you mean idle?"),
        ({"ids": ["a"], "state": "idle"}, "did you mean states?"),
        ({}, "ids is missing"),
        ({"ids": ["a"], "timeout": -1}, "timeout: expected"),
    ):
        with pytest.raises(UsageError) as caught:
            read_request(load("wait"), values)
        assert why in str(caught.value.why)

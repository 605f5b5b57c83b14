"""What holds for every verb of the table, and that each of its doors answers as its schema says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.applications import Starlette
from starlette.testclient import TestClient

from agent_farm.cli.main import cli
from agent_farm.errors import UsageError
from agent_farm.farm.farm import open_farm
from agent_farm.operations.operation import Context, Operation
from agent_farm.operations.requests import read_request
from agent_farm.operations.schemas import answer_schema, request_schema
from agent_farm.operations.table import load, load_all
from agent_farm.server.api import route_of
from agent_farm.server.tools import call_tool, tools_for
from tests.conftest import Af

OPERATIONS = {operation.name: operation for operation in load_all()}
Verb = Operation[Any, Any]
Door = Callable[[str, Mapping[str, Any]], dict[str, Any]]


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
        (tool,) = [tool for tool in tools_for(caller) if tool.name == verb.name]
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
    yield "list_builders", {}, None
    yield "landing", {"id": id}, None
    yield "land_status", {}, ["land", "--status"]
    yield "prompt", {"id": id}, None
    yield "choices", {}, None
    yield "recover", {}, ["recover"]
    yield "prune", {"dry_run": True}, ["prune", "--dry-run"]
    yield "stop", {"ids": [id]}, ["stop", id]
    yield "resume", {"id": id}, ["resume", id]


def at_the_terminal(af: Af, words: Mapping[str, list[str] | None], verb: str, request: Any) -> dict[str, Any]:
    done = af(*(words[verb] or ()), "--json")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def over_mcp(context: Callable[[Verb], Context], verb: str, request: Mapping[str, Any]) -> dict[str, Any]:
    result = asyncio.run(call_tool(verb, request, context))
    assert not result.is_error, result
    assert result.structured_content is not None
    document: dict[str, Any] = json.loads(json.dumps(result.structured_content))
    return document


def over_http(client: TestClient, verb: str, request: Mapping[str, Any]) -> dict[str, Any]:
    path = f"/api/{verb}"
    reads = load(verb).effect == "reads"
    response = client.get(path, params=dict(request)) if reads else client.post(path, json=request)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


def test_every_door_answers_as_the_schema_says(repo: Path, af: Af) -> None:
    id = json.loads(af("spawn", "--runtime", "demo", "[[say:ready]]", "--json").stdout)["builder"]["id"]
    cases = list(examples(id))

    def context(operation: Verb) -> Context:
        return Context(open_farm(repo), whole_ids=True)

    app = Starlette(routes=[route_of(operation, context) for operation in OPERATIONS.values()])
    doors: list[Door] = [
        partial(at_the_terminal, af, {verb: words for verb, _, words in cases}),
        partial(over_mcp, context),
        partial(over_http, TestClient(app)),
    ]
    for number, door in enumerate(doors):
        for verb, request, words in cases:
            if number or words is not None:
                document = door(verb, request)
                Draft202012Validator(answer_schema(load(verb).answer)).validate(document)


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

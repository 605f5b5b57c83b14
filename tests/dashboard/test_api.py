"""The API: documented, the words of the command line, and no input makes it fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_farm.operations.table import offered
from tests.conftest import Af
from tests.dashboard.stage import Dashboard
from tests.gitrepo import git
from tests.leftovers import processes_of

Spawn = Callable[..., str]

NOT_FUZZED = (
    "trigger",
    "tick",
    "schedule_run",
    "sessions_stop",
    "ask_sources",
    "sources_add",
    "sources_update",
    "wait",
    "runtimes_check",
    "pool_fill",
    "init",
    "doctor_fix",
)


def test_builders_carry_what_a_page_groups_by(dashboard: Dashboard, spawn: Spawn, af: Af) -> None:
    task = spawn("Fix auth\nand more", "--files", "src/auth.py")
    protocol = spawn("--protocol", "experiment", "--args", '{"n": 1}')
    assert af("wait", task, protocol, "--timeout", "300").returncode == 0
    found = {one["id"]: one for one in dashboard.get("/api/status")["builders"]}
    assert (found[task]["type"], found[task]["task_text"]) == ("task", "Fix auth\nand more")
    assert found[task]["title"] == "Fix auth and more"
    assert (found[protocol]["type"], found[protocol]["protocol_name"]) == ("protocol", "experiment")
    assert found[protocol]["protocol_args"] == {"n": 1}
    told = json.loads(af("status", "--json").stdout)["builders"]
    for one in told:
        for name in ("type", "branch", "ports", "runtime", "status", "base_commit"):
            assert found[one["id"]][name] == one[name], name
        assert found[one["id"]]["git"]["ahead"] == one["git"]["ahead"]


def test_one_builder_by_its_whole_id(dashboard: Dashboard, spawn: Spawn) -> None:
    id = spawn("--shell")
    assert dashboard.get(f"/api/status?ids={id}")["builders"][0]["id"] == id
    answer = dashboard.ask("GET", f"/api/status?ids={id[:-1]}")
    assert answer.status == 404
    assert dashboard.ask("GET", "/api/status?ids=none").json["error"]["what"] == "No builder none"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "flags"),
    [
        ({}, ()),
        ({"task": "x", "project": "9"}, ("--task", "x", "--project", "9")),
        ({"task": "x", "protocol": "cleanup"}, ("--task", "x", "--protocol", "cleanup")),
        ({"protocol": "cleanup", "shell": True}, ("--protocol", "cleanup", "--shell")),
        ({"task": "x", "shell": True}, ("--task", "x", "--shell")),
        ({"shell": True, "files": ["a.py"]}, ("--shell", "--files", "a.py")),
        ({"shell": True, "args": "{}"}, ("--shell", "--args", "{}")),
        ({"protocol": "cleanup", "args": "{"}, ("--protocol", "cleanup", "--args", "{")),
        ({"protocol": "cleanup", "args": "[1]"}, ("--protocol", "cleanup", "--args", "[1]")),
        ({"task": " "}, ("--task", " ")),
        ({"task": "x", "files": ["none.py"]}, ("--task", "x", "--files", "none.py")),
        ({"project": "77"}, ("--project", "77")),
        ({"protocol": "cleanupp"}, ("--protocol", "cleanupp")),
        ({"task": "x", "runtime": "nope"}, ("--task", "x", "--runtime", "nope")),
        ({"task": "x", "base": "nope"}, ("--task", "x", "--base", "nope")),
        ({"task": "x", "branch": "a", "base": "b"}, ("--task", "x", "--branch", "a", "--base", "b")),
    ],
)
def test_a_refused_spawn_has_the_words_of_the_command_line(
    dashboard: Dashboard, af: Af, body: dict[str, object], flags: tuple[str, ...]
) -> None:
    runtime = {} if "runtime" in body else {"runtime": "demo"}
    answer = dashboard.ask("POST", "/api/spawn", body | runtime)
    told = af("spawn", *flags, *(("--runtime", "demo") if runtime else ()), "--json")
    assert answer.status in (400, 404)
    error, expected = answer.json["error"], json.loads(told.stdout.splitlines()[-1])["error"]
    assert (error["what"], error["hint"]) == (expected["what"], expected["hint"])
    assert dashboard.get("/api/status")["builders"] == []


def test_spawn_and_its_plan(dashboard: Dashboard, af: Af, shop: Path) -> None:
    order = {"task": "do [[say:done]]", "runtime": "demo"}
    plan = dashboard.post("/api/spawn", order | {"dry_run": True})["plan"]
    assert plan["type"] == "task"
    assert not (shop / ".builders").exists()
    made = dashboard.post("/api/spawn", order)["builder"]
    assert af("wait", made["id"], "--timeout", "300").returncode == 0
    assert dashboard.get(f"/api/prompt?id={made['id']}")["prompt"] == "do [[say:done]]"
    events = dashboard.get(f"/api/logs?id={made['id']}")["events"]
    assert [one["event"] for one in events][:2] == ["preparing", "started"]
    assert "answer: done" in dashboard.get(f"/api/capture?id={made['id']}")["screen"]


def test_what_the_repository_wants_is_asked_about(dashboard: Dashboard, shop: Path) -> None:
    (shop / "agent-farm.toml").write_text('[worktree]\nsetup = "touch made"\n')
    order = {"task": "x", "runtime": "demo"}
    answer = dashboard.ask("POST", "/api/spawn", order)
    assert (answer.status, answer.json["error"]["code"]) == (409, "consent-needed")
    assert "touch made" in " ".join(answer.json["error"]["evidence"])
    made = dashboard.post("/api/spawn", order | {"yes": True})["builder"]
    assert made["type"] == "task"


def test_what_was_read_is_agreed_to_and_nothing_that_came_since(dashboard: Dashboard, shop: Path) -> None:
    order = {"task": "x", "runtime": "demo"}

    def refused(yes: object = None) -> dict[str, Any]:
        answer = dashboard.ask("POST", "/api/spawn", order | ({"yes": yes} if yes else {}))
        assert (answer.status, answer.json["error"]["code"]) == (409, "consent-needed")
        error: dict[str, Any] = answer.json["error"]
        return error

    (shop / "agent-farm.toml").write_text('[worktree]\nsetup = "touch first"\n')
    read = refused()
    (shop / "agent-farm.toml").write_text('[worktree]\nsetup = "touch second"\n')
    again = refused(read["consent"])
    assert "touch second" in " ".join(again["evidence"])
    assert "not shown before" in again["what"]
    assert dashboard.ask("POST", "/api/spawn", order | {"yes": "anything"}).status == 400
    assert refused()["consent"] == again["consent"]
    assert dashboard.post("/api/spawn", order | {"yes": again["consent"]})["builder"]["type"] == "task"


def test_choices_are_what_a_builder_would_see(dashboard: Dashboard, shop: Path) -> None:
    (shop / "codev/specs/0099-not-committed.md").write_text("# Later\n")
    found = dashboard.get("/api/choices")
    assert found["projects"] == [
        {"id": "0009", "name": "terminal-click"},
        {"id": "0012", "name": "csv-export"},
    ]
    assert found["protocols"] == ["cleanup", "experiment"]
    runtimes = {one["name"]: one["problem"] for one in found["runtimes"]}
    assert runtimes["demo"] is None
    assert found["defaults"]["base"] == "main"
    assert found["on"] == []  # there is no fleet


def test_conflicts_are_foreseen(dashboard: Dashboard, spawn: Spawn, af: Af, shop: Path) -> None:
    one, other = spawn("[[write:same.txt]] one"), spawn("[[write:same.txt]] other")
    assert af("wait", one, other, "--timeout", "300").returncode == 0
    found = dashboard.get("/api/conflicts")["conflicts"]
    assert [conflict["files"] for conflict in found] == [["same.txt"]]


def test_a_check_runs_in_the_server_too(dashboard: Dashboard, spawn: Spawn, af: Af, shop: Path) -> None:
    """After consent; nothing of it is left beyond its time limit, and it shows among the builders."""
    id = spawn("[[write:made.txt]] one")
    assert af("wait", id, "--timeout", "300").returncode == 0
    (shop / "agent-farm.toml").write_text('[check]\nseconds = 1\ncommand = "echo out; sleep 600"\n')
    refused = dashboard.ask("POST", "/api/check", {"ids": [id]})
    assert (refused.status, refused.json["error"]["code"]) == (409, "consent-needed")
    (found,) = dashboard.post("/api/check", {"ids": [id], "yes": True})["builders"]
    assert (found["state"], found["output"]) == ("red", [{"check": "check", "text": "out"}])
    assert found["proof"]["checks"][0]["timed_out"] is True
    assert dashboard.get(f"/api/status?ids={id}")["builders"][0]["proof"] == found["proof"]
    assert processes_of(shop / ".agent-farm/trials") == []


def test_odd_requests_are_refused_by_name(dashboard: Dashboard, spawn: Spawn) -> None:
    id = spawn("--shell")
    for method, path, body, what in (
        ("POST", "/api/spawn", {"tsak": "x"}, "Invalid arguments for spawn"),
        ("POST", "/api/spawn", {"task": 3}, "Invalid arguments for spawn"),
        ("POST", "/api/spawn", {"files": ["a", 1], "task": "x"}, "Invalid arguments for spawn"),
        ("POST", "/api/spawn", [1], "The body must be a JSON object"),
        ("POST", "/api/send", {"ids": [id]}, "Invalid arguments for send"),
        ("POST", "/api/merge", {"ids": [id], "strategy": "hope"}, "Invalid arguments for merge"),
        ("GET", f"/api/capture?id={id}&history=-1", None, "Invalid arguments for capture"),
        ("GET", f"/api/capture?id={id}&history=x", None, "Invalid arguments for capture"),
        ("POST", "/api/stop", {"id": [id]}, "Invalid arguments for stop"),
        ("POST", "/api/stop", [id], "The body must be a JSON object"),
        ("GET", "/api/status?gti=true", None, "Invalid arguments for status"),
        ("GET", "/api/sessions_list?state=happy", None, "Invalid arguments for sessions_list"),
    ):
        answer = dashboard.ask(method, path, body)
        assert answer.status == 400, (method, path)
        assert answer.json["error"]["what"].startswith(what)
    assert dashboard.ask("POST", "/api/send", data=b"{").status == 400
    assert dashboard.ask("POST", "/api/send", data=b"x" * 9_000_000).status == 413
    wrong = dashboard.ask("DELETE", "/api/status")
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD") or wrong.status == 405


def test_text_that_would_type_keys_is_refused(dashboard: Dashboard, spawn: Spawn, af: Af) -> None:
    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    answer = dashboard.ask("POST", "/api/send", {"ids": [id], "text": "a\x1b[201~rm -rf\r"})
    told = af("send", id, "a\x1b[201~rm -rf\r", "--json")
    assert answer.status == 400
    assert answer.json["error"]["what"] == json.loads(told.stdout.splitlines()[-1])["error"]["what"]


def test_the_description_names_every_verb(dashboard: Dashboard) -> None:
    description = dashboard.ask("GET", "/api/openapi.json").json
    described = {path: set(methods) for path, methods in description["paths"].items()}
    verbs = offered("http", "architect")
    table = {f"/api/{verb.name}": {"get" if verb.effect == "reads" else "post"} for verb in verbs}
    assert table == described
    assert {"/api/sessions_list", "/api/trigger", "/api/schedule_create"} <= described.keys()
    assert "/api/butler_stop" not in described
    fields = description["components"]["schemas"]["Prune"]["properties"]
    assert "description" in fields["stop"]


@pytest.mark.slow
def test_no_input_makes_the_api_fail(dashboard: Dashboard, spawn: Spawn, af: Af, tmp_path: Path) -> None:
    """schemathesis on the OpenAPI description: no 5xx, and answers are what the description says."""
    import subprocess
    import sys

    id = spawn("Work [[write:a.txt]]")
    assert af("wait", id, "--timeout", "300").returncode == 0
    config = tmp_path / "schemathesis.toml"
    config.write_text(f'[parameters]\n"path.id" = "{id}"\n')
    checks = "not_a_server_error,response_schema_conformance,content_type_conformance,status_code_conformance"
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(config),
            "run", f"{dashboard.address}/api/openapi.json",
            "--header", f"Authorization: Bearer {dashboard.token}", "--checks", checks,
            "--max-examples", "12",
            "--phases", "examples,coverage,fuzzing", "--no-color", "--generation-deterministic",
            # They wait, ask for what a runtime can, or make the farm another one.
            *(word for verb in NOT_FUZZED for word in ("--exclude-operation-id", verb)),
        ],
        cwd=dashboard.root.parent, capture_output=True, text=True, check=False, timeout=170,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Traceback" not in dashboard.log.read_text()


def lines_of(dashboard: Dashboard, body: dict[str, object]) -> list[dict[str, Any]]:
    answer = dashboard.ask("POST", "/api/spawn", body, headers={"Accept": "application/x-ndjson"})
    return [json.loads(line) for line in answer.body.splitlines()]


def test_what_became_of_each_of_several_is_told_before_the_answer(dashboard: Dashboard, shop: Path) -> None:
    git(shop, "branch", "feature")
    tasks = "\n".join(json.dumps({"task": name, "branch": "feature"}) for name in "ab")
    *parts, last = lines_of(dashboard, {"tasks": tasks, "runtime": "demo"})
    (made,) = (one["part"]["spawned"]["builder"]["id"] for one in parts if "spawned" in one.get("part", {}))
    (failed,) = (one["part"]["id"] for one in parts if "what" in one.get("part", {}))
    assert [one["id"] for one in last["builders"]] == [made]
    assert [one["id"] for one in last["failed"]] == [failed]


def test_one_verb_is_described_alone(dashboard: Dashboard) -> None:
    found = dashboard.get("/api/openapi.json?verb=spawn")
    whole = dashboard.get("/api/openapi.json")
    assert [*found["paths"]] == ["/api/spawn"]
    assert found["paths"]["/api/spawn"] == whole["paths"]["/api/spawn"]
    assert len(found["components"]["schemas"]) < len(whole["components"]["schemas"]) / 5

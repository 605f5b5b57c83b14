"""`af costs`: what runtimes tell after each turn, as differences that add up to what they tell at the end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agent_farm.builders.events import Usage
from agent_farm.builders.spending import copied_spending, load_spending
from tests.conftest import Af
from tests.waiting import wait_until


def costs(af: Af, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(af("costs", "--json", *words).stdout)
    return found


def spawned(af: Af, text: str) -> str:
    id = json.loads(af("spawn", "--runtime", "demo", text, "--json").stdout)["builder"]["id"]
    assert af("wait", id, "--timeout", "300").returncode == 0
    return str(id)


def usage_of(repo: Path, id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((repo / ".agent-farm/runs" / id / "usage.json").read_text())
    return found


def test_steps_are_differences_within_a_conversation(tmp_path: Path) -> None:
    file = tmp_path / "usage.jsonl"
    told = [
        {"at": 1, "run": "a", "conversation": "x", "input_tokens": 10, "output_tokens": 5, "cost": 0.5},
        {"at": 2, "run": "a", "conversation": "x", "input_tokens": 30, "output_tokens": 6, "cost": 0.75},
        {"at": 3, "run": "b", "conversation": "x", "input_tokens": 31, "output_tokens": 9, "cost": 1.0},
        {"at": 4, "run": "c", "conversation": "y", "input_tokens": 40, "output_tokens": 10},
        {"at": 5, "run": "c", "conversation": "y", "input_tokens": 7, "output_tokens": 1},
    ]
    lines = [json.dumps(one) for one in told]
    file.write_text("\n".join([*lines[:2], "not JSON", "[]", *lines[2:], '{"at": 6, "ru']))
    file.chmod(0o600)
    found = load_spending(file)
    assert [one.input_tokens for one in found] == [10, 20, 1, 40, 7]
    assert [one.cost for one in found] == [0.5, 0.25, 0.25, None, None]
    assert load_spending(tmp_path / "none") == []


def test_what_was_told_since_a_journal_was_copied_is_one_more_step() -> None:
    told = [
        {"at": 1, "run": "a", "conversation": "x", "input_tokens": 10, "output_tokens": 5, "cost": 0.5},
        {"at": 2, "run": "a", "conversation": "x", "input_tokens": 30, "output_tokens": 6, "cost": 0.75},
    ]
    journal = "".join(f"{json.dumps(one)}\n" for one in told).encode()

    def found(journal: bytes, usage: Usage | None) -> list[tuple[str, int, int, float | None]]:
        steps = copied_spending(journal, usage, at=3.0, run="b")
        return [(one.run, one.input_tokens, one.output_tokens, one.cost) for one in steps]

    known = [("a", 10, 5, 0.5), ("a", 20, 1, 0.25)]
    assert found(journal, Usage(40, 8, 0, 1.0)) == [*known, ("b", 10, 2, 0.25)]
    assert found(journal, Usage(30, 6, 0, 0.75)) == known, "it is what the journal ends with"
    assert found(journal, Usage(10, 5, 0, 0.5)) == known, "the journal is newer"
    assert found(journal, None) == known
    assert found(b"", Usage(10, None)) == [("b", 10, 0, None)]


@pytest.mark.parametrize(
    "told",
    [
        '{"at": 1e400, "input_tokens": 1}',
        '{"at": 1e17, "input_tokens": 1}',
        '{"at": AT, "input_tokens": 1e999}',
        '{"at": AT, "input_tokens": NaN, "cost": Infinity}',
        '{"at": AT, "input_tokens": "x", "output_tokens": [], "cost": {}}',
        f'{{"at": AT, "output_tokens": {"9" * 400}}}',
    ],
)
def test_what_a_builder_scribbles_there_ends_no_command_and_is_no_number(
    af: Af, repo: Path, told: str
) -> None:
    id = spawned(af, "First")
    run = repo / ".agent-farm/runs" / id
    for name in ("usage.json", "usage.jsonl"):
        (run / name).write_text(told.replace("AT", str(time.time())))
    for words in (("costs",), ("costs", "--json"), ("status",), ("status", "--json")):
        done = af(*words)
        assert done.returncode == 0, done.stderr
        assert not {"NaN", "Infinity", "inf"} & set(done.stdout.replace(",", " ").split())
    assert costs(af)["total"]["input_tokens"] == 0


def test_starts_builders_days_and_landed_changes_add_up(af: Af, repo: Path) -> None:
    assert "No runtime has reported" in af("costs").stderr
    one, other = spawned(af, "First [[write:one.txt]]"), spawned(af, "Second [[write:other.txt]]")
    assert af("stop", one).returncode == 0
    assert af("resume", one).returncode == 0
    assert af("wait", one, "--timeout", "300").returncode == 0
    assert af("send", one, "[[say:once more]]").returncode == 0
    assert af("wait", one, "--timeout", "300").returncode == 0
    wait_until(lambda: len(load_spending(repo / ".agent-farm/runs" / one / "usage.jsonl")) == 2, what="it")
    found = costs(af)
    by_id = {each["id"]: each for each in found["builders"]}
    assert len(by_id[one]["runs"]) == 2
    assert by_id[one]["output_tokens"] == usage_of(repo, one)["output_tokens"]
    assert by_id[other]["output_tokens"] == usage_of(repo, other)["output_tokens"]
    for name in ("input_tokens", "output_tokens"):
        assert found["total"][name] == sum(each[name] for each in found["days"])
        assert found["total"][name] == sum(run[name] for each in found["builders"] for run in each["runs"])
    assert (found["landed"], found["per_landed"]) == (0, None)
    assert af("merge", other).returncode == 0
    found = costs(af)
    assert (found["landed"], found["per_landed"]["input_tokens"]) == (1, found["total"]["input_tokens"])
    assert af("stop", other).returncode == 0
    assert af("prune", other).returncode == 0
    kept = {each["id"]: each for each in costs(af)["builders"]}
    assert (kept[other]["landed"], kept[other]["removed"]) == (True, True)
    assert "1 change landed, each for" in af("costs").stderr


@pytest.mark.parametrize("days", ["0", "401"])
def test_a_span_has_bounds(af: Af, days: str) -> None:
    assert af("costs", "--days", days).returncode == 2

from __future__ import annotations

from pathlib import Path

from agent_farm.runtimes import ADAPTERS
from agent_farm.runtimes.facts import load_facts
from agent_farm.runtimes.table import render

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_that_of_the_adapters() -> None:
    assert (DOCS / "runtimes.md").read_text() == render(), (
        "run python -m agent_farm.runtimes.table > docs/runtimes.md"
    )


def test_every_runtime_has_its_facts() -> None:
    assert set(load_facts()) == {*ADAPTERS, "external"}


def test_the_pinned_versions_are_those_the_facts_speak_of() -> None:
    import json

    pinned = json.loads((Path(__file__).parents[1] / "package.json").read_text())["dependencies"]
    told = " ".join(facts.tried for facts in load_facts().values())
    assert all(version in told for version in pinned.values())

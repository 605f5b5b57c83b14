from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_farm.errors import DamagedFile
from agent_farm.runtimes import ADAPTERS, facts
from agent_farm.runtimes.facts import load_facts, require_facts
from agent_farm.runtimes.table import render

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_that_of_the_adapters() -> None:
    assert (DOCS / "runtimes.md").read_text() == render(), "run make docs"


def test_every_runtime_has_its_facts() -> None:
    assert set(load_facts()) == {*ADAPTERS, "external"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r"(?m)^login = .*\n", "[gemini] is not whole: lacks: login"),
        (r"(?m)^login = ", "[gemini] is not whole: lacks: login; unknown: logn"),
    ],
)
def test_a_fact_that_is_missing_is_said_by_name(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, gemini = facts.FILE.read_text().split("[gemini]")
    broken = re.sub(text, "logn = " if "unknown" in why else "", gemini, count=1)
    (tmp_path / "facts.toml").write_text(f"{before}[gemini]{broken}")
    monkeypatch.setattr(facts, "FILE", tmp_path / "facts.toml")
    with pytest.raises(DamagedFile) as caught:
        load_facts()
    assert why in f"{caught.value.what}: {caught.value.why}"
    monkeypatch.undo()
    with pytest.raises(DamagedFile, match=r"facts.toml has no \[new\]"):
        require_facts("new")


def test_the_pinned_versions_are_those_the_facts_speak_of() -> None:
    import json

    pinned = json.loads((Path(__file__).parents[1] / "package.json").read_text())["dependencies"]
    told = " ".join(facts.tried for facts in load_facts().values())
    assert all(version in told for version in pinned.values())

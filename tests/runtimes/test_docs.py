from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from agent_farm.errors import DamagedFile
from agent_farm.runtimes import ADAPTERS, facts
from agent_farm.runtimes.facts import Facts, load_facts, require_facts
from agent_farm.runtimes.table import render
from tests.runtimes.orders import make_order

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


def test_the_adapter_of_the_guide_is_a_whole_one(tmp_path: Path) -> None:
    """What a newcomer types first starts a program as it says, and reads what that prints."""
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "adding-a-runtime.md").read_text(), re.DOTALL)
    (tmp_path / "acme.py").write_text(code)
    spec = importlib.util.spec_from_file_location("acme", tmp_path / "acme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    adapter = module.AcmeAdapter()
    order = make_order(tmp_path, tmp_path, prompt="-x", role_text="ROLE", conversation_id="c1", resume=True)
    launch = adapter.interactive(order)
    assert launch.argv == ("acme", "--mode", "auto-edit", "--resume", "c1", "--", "-x")
    assert [file.content for file in launch.files][1:] == ["ROLE"]
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\n"
        "print(json.dumps({'type': 'start', 'session_id': 's1'}))\n"
        "print(json.dumps({'type': 'answer', 'text': sys.stdin.read()}))\n"
    )
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "ACME_API_KEY": "k"}
    command = (sys.executable, str(program))
    result = asyncio.run(adapter.invoke("hello", "", {}, env, cwd=tmp_path, command=command))
    assert (result.failure, result.conversation_id, result.output) == (None, "s1", "hello")


def test_the_guide_names_every_fact() -> None:
    guide = (DOCS / "adding-a-runtime.md").read_text()
    assert [field.name for field in fields(Facts) if f"`{field.name}`" not in guide] == []

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agent_farm.runtimes import ADAPTERS, get_adapter

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_cli_has_a_section_that_names_what_it_reads_and_was_tried_with(name: str) -> None:
    cli = get_adapter(name).cli
    _, _, rest = (DOCS / "runtimes.md").read_text().partition(f"\n## {name}\n")
    section = re.split(r"\n## ", rest)[0]
    wanted = [cli.install, cli.oldest, cli.tried, *cli.every_variable, *cli.hooks.states]
    assert [word for word in wanted if word not in section] == []


def test_the_pinned_versions_are_those_that_the_descriptions_speak_of() -> None:
    pinned = json.loads((Path(__file__).parents[1] / "package.json").read_text())["dependencies"]
    said = (DOCS / "decisions/0267-openspecs-files-not-its-program.md").read_text()
    assert f"version {pinned.pop('@fission-ai/openspec')} of npm" in said
    tried = {
        get_adapter(name).cli.install.rpartition(" ")[2]: get_adapter(name).cli.tried for name in ADAPTERS
    }
    assert {package: tried.get(package) for package in pinned} == pinned

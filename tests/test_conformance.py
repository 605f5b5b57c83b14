"""Every test that conformance.md and safety.md name exists, and every source document has its part."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
DOCUMENT = PROJECT / "docs/conformance.md"
SAFETY = PROJECT / "docs/safety.md"
SOURCES = ("000", "001", "002", "003", "004")


def named_tests(document: Path) -> Iterator[tuple[str, str]]:
    """Module and function; `::name` belongs to the module named last in its row."""
    for line in document.read_text().splitlines():
        module = ""
        for path, name in re.findall(r"`([\w/.]*)::(\w+)(?:\[[^`]*\])?`", line):
            module = path or module
            yield module, name


def functions_of(module: Path) -> set[str]:
    tree = ast.parse(module.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(
    ("document", "least"), [(DOCUMENT, 150), (SAFETY, 40)], ids=["conformance", "safety"]
)
def test_every_named_test_exists(document: Path, least: int) -> None:
    named = list(named_tests(document))
    modules = {module for module, _ in named}
    assert [module for module in modules if not (PROJECT / module).is_file()] == []
    known = {module: functions_of(PROJECT / module) for module in modules}
    assert [f"{module}::{name}" for module, name in named if name not in known[module]] == []
    assert len(named) > least


def test_every_source_document_has_its_part() -> None:
    headings = re.findall(r"^## (\d{3}) ", DOCUMENT.read_text(), re.MULTILINE)
    assert tuple(headings) == SOURCES


@pytest.mark.parametrize("document", [DOCUMENT, SAFETY], ids=["conformance", "safety"])
def test_every_row_names_a_test_or_is_a_heading(document: Path) -> None:
    rows = [line for line in document.read_text().splitlines() if line.startswith("|")]
    heading = r"\| (---|\*\*|requirement|who )|\|---"
    bare = [row for row in rows if "::" not in row and not re.match(heading, row)]
    assert bare == []

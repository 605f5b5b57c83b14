"""A fresh install holds all that the code imports, and not by way of something else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SINCE_3_12 = {"_sha2"}  # part of Python, also where this one does not know it yet
OURS = {"agent_farm", "tests", "benchmarks", "tools"}
# Distributions whose import name differs from their own.
IMPORTED_AS = {
    "gitpython": {"git"},
    "agent-client-protocol": {"acp"},
    "pytest-mock": {"pytest_mock"},
    "opentelemetry-api": {"opentelemetry"},
    "opentelemetry-sdk": {"opentelemetry.sdk"},
    "opentelemetry-exporter-otlp-proto-http": {"opentelemetry.exporter"},
}


def declared(*extras: str) -> set[str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    lines = [
        *project["dependencies"],
        *(line for name in extras for line in project["optional-dependencies"][name]),
    ]
    names = {re.split(r"[^\w.-]", line)[0].lower() for line in lines}
    return {module for name in names for module in IMPORTED_AS.get(name, {name.replace("-", "_")})}


def imported(directory: str) -> dict[str, str]:
    """Third-party modules and a file that imports each."""
    found = {}
    for file in sorted((PROJECT / directory).rglob("*.py")):
        if "node_modules" in file.parts:
            continue
        for module in _modules(ast.parse(file.read_text())):
            if module.split(".")[0] not in sys.stdlib_module_names | SINCE_3_12 | OURS:
                found[_package(module)] = file.relative_to(PROJECT).as_posix()
    return found


def _modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _package(module: str) -> str:
    """The part that one distribution provides; opentelemetry is shared by several."""
    parts = module.split(".")
    if parts[0] == "opentelemetry" and parts[1:2] in (["sdk"], ["exporter"]):
        return ".".join(parts[:2])
    return parts[0]


@pytest.mark.parametrize(
    ("directory", "extras"),
    [("agent_farm", ("fleet",)), ("benchmarks", ("dev",)), ("tools", ()), ("tests", ("dev",))],
)
def test_every_import_is_a_declared_dependency(directory: str, extras: tuple[str, ...]) -> None:
    known = declared(*extras)
    assert {module: file for module, file in imported(directory).items() if module not in known} == {}

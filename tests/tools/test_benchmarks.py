"""`make bench` can run every benchmark: each is loaded here, and what it has another Python load as well."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS

TEXT = re.compile(r"from (agent_farm[\w.]*) import (\w+)")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_can_be_run(name: str) -> None:
    assert callable(import_module(f"benchmarks.{name}").main)


def test_what_benchmarks_have_another_python_load_is_there() -> None:
    """It is text in them, which no type checker sees."""
    lines = {
        found[0]
        for file in (Path(__file__).parents[2] / "benchmarks").glob("*.py")
        for found in TEXT.finditer(file.read_text())
    }
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(sorted(lines))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

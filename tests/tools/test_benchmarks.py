"""`make bench` can run every benchmark: each is loaded here, and what it has another Python load as well."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.record import recorded
from benchmarks.stage import spread

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


def test_one_that_fails_keeps_nothing_from_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> Iterator[tuple[str, object]]:
        yield "left out", "the rest"
        sys.exit("it broke")

    monkeypatch.setattr("benchmarks.ask.main", fails)
    monkeypatch.setattr("benchmarks.server.main", lambda: [("af / raw", spread([1, 2, 3]))])
    monkeypatch.setattr("benchmarks.__main__.RESULTS", tmp_path / "results.json")
    monkeypatch.setattr("sys.argv", ["", "ask", "server"])
    monkeypatch.delenv("BENCH_RECORD", raising=False)
    with pytest.raises(SystemExit, match="Failed: ask"):
        main()
    found = recorded(tmp_path / "results.json")
    assert found["server"] == {"af / raw": {"low": 1.5, "median": 2, "high": 2.5}}
    assert "ask" not in found
    said = capsys.readouterr().out
    assert "failed: SystemExit: it broke" in said
    assert "2.00 (1.50 to 2.50)" in said

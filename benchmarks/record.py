"""What was measured, as JSON and as a plot: kept in the repository, or only below `build/`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.chart import Bars, chart

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "benchmarks/recorded.json"
RESULTS = ROOT / "build/benchmarks.json"
PLOT = ROOT / "docs/benchmarks.svg"

Figures = dict[str, dict[str, Any]]


def recorded(from_file: Path = RECORDED) -> Figures:
    """By benchmark."""
    return dict(json.loads(from_file.read_text())) if from_file.exists() else {}


def record(into: Path, part: str, found: Mapping[str, object]) -> None:
    into.parent.mkdir(exist_ok=True)
    figures = recorded(into) | {part: found}
    into.write_text(json.dumps(figures, indent=1, default=asdict) + "\n")


def machine() -> dict[str, object]:
    """What a ratio depends on, beside what is measured."""
    tools = {name: _version(name, flag) for name, flag in (("git", "--version"), ("tmux", "-V"))}
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **tools,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def _version(program: str, flag: str) -> str:
    return subprocess.run([program, flag], capture_output=True, text=True, check=True).stdout.split()[-1]


def plot() -> str:
    figures = recorded()

    def spreads(*parts: str) -> Bars:
        found = [one for part in parts for one in figures.get(part, {}).items()]
        return {name: value for name, value in found if isinstance(value, dict)}

    ours = spreads("ratios", "many", "builders")
    costs = {name: one for name, one in ours.items() if "look" in one}
    same = {name: one["raw"] for name, one in costs.items() if one["raw"]}
    clock = {name.removesuffix(" / raw"): one for name, one in ours.items() if name.endswith(" / raw")}
    return chart(
        {
            "Processor time, in multiples of python -c 'import click'": costs,
            "Processor time, in multiples of git and tmux for the same": same,
            "Elapsed time, in multiples of git and tmux for the same": clock,
            "Elapsed time of other tools, in multiples of af": spreads("peers"),
        }
    )


def tables() -> str:
    """For the document: costs of verbs, and everything else that was measured."""
    figures = recorded()
    machine = ", ".join(f"{name} {value}" for name, value in figures.pop("machine").items())
    rows = [(name, one) for part in figures.values() for name, one in part.items()]
    costs = [
        f"| {name} | {_spread(one)} | {one['seconds']:.3f} | {one['look']['peak']:.0f} "
        f"| {one['look']['git']:g}, {one['look']['tmux']:g} | {_spread(one['raw']) if one['raw'] else ''} |"
        for name, one in rows
        if isinstance(one, dict) and "look" in one
    ]
    others = [
        f"| {name} | {_spread(one) if isinstance(one, dict) else one} |"
        for name, one in rows
        if not isinstance(one, dict) or "look" not in one
    ]
    head = "| | C | s by the clock | MB | git, tmux | × git and tmux |\n| --- | --- | --- | --- | --- | --- |"
    return "\n".join([f"On {machine}.\n", head, *costs, "\n| | |\n| --- | --- |", *others])


def _spread(one: Mapping[str, float]) -> str:
    return f"{one['median']:.2f} ({one['low']:.2f} to {one['high']:.2f})"

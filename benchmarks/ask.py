"""What `af ask` adds to the CLI it starts: the same program, once by itself and once through `af ask`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.stage import AF, Stage, compare, show, stage

BAR_SECONDS = 0.15


def main() -> None:
    with stage() as small:
        many = small.directory / "many"
        for number in range(100_000):
            file = many / str(number // 1000) / str(number)
            if number % 1000 == 0:
                file.parent.mkdir(parents=True)
            file.touch()
        rows = [_added(small, small.repository, "50 files"), _added(small, many, "100,000 files")]
    show(rows)


def _added(on: Stage, source: Path, what: str) -> tuple[str, str]:
    agent = on.directory / "agent"
    agent.write_text("#!/bin/sh\necho answer\n")
    agent.chmod(0o755)
    config = on.directory / ".config" / "lctx" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    entry = {"ask": str(agent), "chat": str(agent)}
    sources = {"code": {"type": "directory", "path": str(source)}}
    config.write_text(json.dumps({"defaultAgent": "a", "agents": {"a": entry}, "sources": sources}))
    times = compare(
        {
            "bare": lambda: subprocess.run([agent], env=dict(on.env), capture_output=True, check=True),
            "ask": lambda: on.run(AF, "ask", "-s", "code", "Why?"),
            "click": lambda: subprocess.run(
                [sys.executable, "-c", "import click"], env=dict(on.env), check=True
            ),
        }
    )
    added = times["ask"] - times["bare"]
    return (
        f"af ask over its CLI, {what}",
        f"+{added * 1000:.0f} ms (bar +{BAR_SECONDS * 1000:.0f} ms),"
        f" {added / times['click']:.1f} × importing click",
    )

"""What `af ask` adds to the CLI it starts: the same program, once by itself and once through `af ask`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.stage import AF, IMPORT_CLICK, Rows, Stage, difference, spread, stage, turns

BAR_SECONDS = 0.15


def main() -> Rows:
    with stage() as small:
        many = small.directory / "many"
        for number in range(100_000):
            file = many / str(number // 1000) / str(number)
            if number % 1000 == 0:
                file.parent.mkdir(parents=True)
            file.touch()
        return [*_added(small, small.repository, "50 files"), *_added(small, many, "100,000 files")]


def _added(on: Stage, source: Path, what: str) -> list[tuple[str, object]]:
    agent = on.directory / "agent"
    agent.write_text("#!/bin/sh\necho answer\n")
    agent.chmod(0o755)
    config = on.directory / ".config" / "lctx" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    entry = {"ask": str(agent), "chat": str(agent)}
    sources = {"code": {"type": "directory", "path": str(source)}}
    config.write_text(json.dumps({"defaultAgent": "a", "agents": {"a": entry}, "sources": sources}))
    times = turns(
        {
            "bare": lambda: subprocess.run([agent], env=dict(on.env), capture_output=True, check=True),
            "ask": lambda: on.run(AF, "ask", "-s", "code", "Why?"),
            "click": lambda: on.run(*IMPORT_CLICK),
        }
    )
    added = difference(times["ask"], times["bare"])
    return [
        (f"{what}: af ask over its CLI, s (bar: {BAR_SECONDS:g})", added),
        (f"{what}: the same, in C", spread([one / min(times["click"]) for one in vars(added).values()])),
    ]
